"""Arguments called `async`, which Python has not parsed since 3.7."""

import ast
from pathlib import Path

import pytest

from tpuport import catalog, kinds
from tpuport.model import Project
from tpuport.source import reserved

RULES = catalog.load().rules
OLD = """import torch

# x.cuda(async=True) moved it
def train(model, batch):
    x, y = batch
    return model(x.cuda(async=True), y.cuda(0, async = True).long())
"""


def test_code_keeps_its_places_and_comments() -> None:
    readable = reserved.readable(OLD, reserved.SAME_LENGTH)
    assert [len(line) for line in readable.split("\n")] == [len(line) for line in OLD.split("\n")]
    assert "# x.cuda(async=True) moved it" in readable
    ast.parse(readable)


@pytest.mark.parametrize(
    "source",
    [
        "x.cuda(non_blocking=True)\n",
        "run(async=True)\nx.cuda(async=True)\n",
        "async = 1\n",
        "x.cuda(f(async=True))\n",
        "x.cuda((async=True\n",
        "text = 'x.cuda(async=True)'\n",
        "# ásync\nx.cuda(async=True)\n",
    ],
)
def test_all_else_stays(source: str) -> None:
    assert reserved.readable(source, reserved.SAME_LENGTH) == source


def test_findings_show_the_line_as_it_is() -> None:
    found = kinds.handler(kinds.PYTHON).findings(OLD, Project("2.11"), RULES)
    assert [(one.span.line, one.code) for one in found] == [(6, "TP101"), (6, "TP101")]
    assert {one.line_text for one in found} == {OLD.split("\n")[5]}


def test_the_run_learns_from_such_a_file() -> None:
    raw = OLD.replace(
        "import torch\n", 'import os\nimport torch\nos.environ["CUDA_VISIBLE_DEVICES"] = "0"\n', 1
    ).encode()
    look = kinds.handler(kinds.PYTHON).look(Path("old.py"), raw)
    assert look is not None
    assert look.facts.defers_cuda


def test_migrated_code_runs_on_python_3() -> None:
    done = kinds.handler(kinds.PYTHON).rewrite(OLD, Project("2.11"), RULES, unsafe=False, line_length=None)
    ast.parse(done.text)
    assert "x.to(device, non_blocking=True), y.to(device, non_blocking = True).long()" in done.text
    assert "# x.cuda(async=True) moved it" in done.text
