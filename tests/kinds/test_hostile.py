"""Texts that nobody writes: none of them takes long, and none is taken for a bug."""

import time
from pathlib import Path

import pytest

from tests.benchmarks import mutations
from tpuport.model import Status

LONG = 40_000
SECONDS = 4
"""Of the processor: far above what any takes, far below what each of the quadratic ones took."""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", "https://a/" + "a" * LONG + "torch"),
        ("requirements.txt", " " * LONG + "torch"),
        ("requirements.txt", "torch==1." + "9" * LONG),
        ("setup.cfg", "torch" + " " * LONG + "x"),
        ("run.sh", "torch $(" * (LONG // 8)),
        ("run.sh", "if command -v nvidia-smi; then\n" * (LONG // 20)),
        ("config.yaml", "fp16" + "_a" * (LONG // 2) + ": true"),
        ("pyproject.toml", "x = " + "9" * LONG + "\ny = 'cuda'\n"),
        ("x.json", '{"x": ' + "9" * LONG + ', "y": "cuda"}'),
        ("x.yaml", "a: &a [cuda]\n" + "".join(f"b{n}: &b{n} [*a, *a]\n" for n in range(LONG // 40))),
        ("Dockerfile", 'FROM a\nRUN ["torchrun", "\x01"]\n'),
        ("x.py", "import torch" + ", a" * LONG),
        ("x.py", f"'{'import torch,' * (LONG // 13)}'\n"),
        ("x.json", "[" * LONG + '"cuda"' + "]" * LONG),
        ("x.yaml", "[" * LONG + "cuda" + "]" * LONG),
    ],
)
def test_an_odd_text_comes_to_an_outcome_in_time(name: str, text: str) -> None:
    started = time.process_time()
    outcome = mutations.settled(str(Path("odd") / name), text.encode())
    assert time.process_time() - started < SECONDS
    assert outcome.status is not Status.FAILED, outcome.reason
