"""Idioms of real CUDA code, each with the answer that a careful reviewer would give."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tpuport import catalog
from tpuport.model import Facts, Project
from tpuport.rewrite import rewrite

SHAPES = tomllib.loads(Path(__file__).with_name("shapes.toml").read_text(encoding="utf-8"))["shape"]
RULES = catalog.load().rules


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape["name"])
def test_shape(shape: dict[str, Any]) -> None:
    project = Project("2.11", facts=Facts(defers_cuda=shape.get("defers_cuda", False)))
    done = rewrite(shape["before"], project, RULES)
    assert done.text == shape.get("after", shape["before"])
    left = [f"{finding.span.line} {finding.code} {finding.severity}" for finding in done.remaining]
    assert left == shape["left"]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape["name"])
def test_second_run_changes_nothing(shape: dict[str, Any]) -> None:
    text = shape.get("after", shape["before"])
    assert rewrite(text, Project("2.11"), RULES).text == text
