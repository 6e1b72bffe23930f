"""Comments at the sites that are left."""

import re
from pathlib import Path

import pytest

from tpuport import catalog
from tpuport.annotate import MARK, annotate
from tpuport.match import findings
from tpuport.model import Project

RULES = catalog.load().rules
NEWEST = Project("2.11")

CASES = {
    "above its statement": (
        "import torch\n\n\ndef large():\n    return torch.cuda.get_device_capability(\n        0\n    )\n",
        4,
    ),
    "above the decorators": ("import torch\n\n\n@torch.cuda.graphs.wrap\ndef f():\n    pass\n", 3),
    "above a line of several statements": ("import torch\n\nx = 1; s = torch.cuda.Stream()\n", 2),
    "not inside a string": ('import torch\n\nx = ("""a\nb""", torch.cuda.Stream())\n', 2),
}


def annotated(source: str) -> str:
    return annotate(source, findings(source, NEWEST, RULES))


@pytest.mark.parametrize("name", CASES)
def test_comment_stands_above(name: str) -> None:
    source, line = CASES[name]
    new = annotated(source).split("\n")
    assert MARK in new[line]
    assert [*new[:line], *new[line + 1 :]] == source.split("\n")


@pytest.mark.parametrize("name", CASES)
def test_second_run_adds_nothing(name: str) -> None:
    once = annotated(CASES[name][0])
    assert annotated(once) == once


def test_comments_name_lines_of_the_result() -> None:
    new = annotated((Path(__file__).parents[2] / "fixtures/tiny_trainer/bench.py").read_text())
    lines = new.splitlines()
    named = re.findall(r"\bline (\d+)", new)
    assert named
    assert all("torch.cuda.Stream()" in lines[int(number) - 1] for number in named)


def test_what_works_and_what_is_fixable_gets_none() -> None:
    source = "import torch\n\ntorch.backends.cudnn.benchmark = True\nn = torch.cuda.device_count()\n"
    assert annotated(source) == source
