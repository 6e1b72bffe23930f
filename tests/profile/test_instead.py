"""What is proposed in place of operators that a TPU lacks gives the same on the CPU."""

import ast
import math
from typing import Any

import pytest
import torch
from torch.nn import functional

from tpuport import catalog
from tpuport.checks.missing_kernel import FUNCTIONS, INSTEAD
from tpuport.match import findings
from tpuport.model import Project

RULES = [rule for rule in catalog.load().rules if rule.code == "TP901"]

A, B = torch.randn(4, 3, generator=torch.Generator().manual_seed(0)), torch.linspace(-2, 2, 12).reshape(4, 3)
GAPS = A.where(A < 1, torch.nan)
SAME: dict[str, tuple[Any, dict[str, Any]]] = {
    "copysign": (torch.copysign(A, B), {}),
    "huber_loss": (functional.huber_loss(A, B), {}),
    "hypot": (torch.hypot(A, B), {}),
    "kthvalue": (torch.kthvalue(A, 2, dim=0).values, {"k": 2}),
    "linalg_cross": (torch.linalg.cross(A, B), {}),
    "logaddexp": (torch.logaddexp(A, B), {}),
    "logspace": (torch.logspace(0, 2, 5), {"start": 0, "end": 2, "steps": 5}),
    "median": (torch.median(A), {}),
    "mish": (functional.mish(A), {}),
    "nansum": (torch.nansum(GAPS), {"a": GAPS}),
    "sinc": (torch.sinc(A.where(A > 0, 0)), {"a": A.where(A > 0, 0)}),
    "smooth_l1_loss": (functional.smooth_l1_loss(A, B), {}),
    "std_mean": (torch.std_mean(A), {}),
}


def test_each_is_tried() -> None:
    assert SAME.keys() == INSTEAD.keys()


@pytest.mark.parametrize("name", INSTEAD)
def test_it_gives_what_the_operator_gives(name: str) -> None:
    expected, given = SAME[name]
    values = {"a": A, "b": B, "math": math, "torch": torch} | given
    expression, _, where = INSTEAD[name].partition(" with ")
    if where:
        (assignment,) = ast.parse(where).body
        exec(compile(ast.Module([assignment], []), "<with>", "exec"), values)
    torch.testing.assert_close(eval(expression, values), expected)


@pytest.mark.parametrize("name", INSTEAD)
def test_lint_finds_the_operator_and_names_what_to_write(name: str) -> None:
    (full,) = (
        full
        for full in FUNCTIONS
        if full.removeprefix("torch.").removeprefix("nn.functional.").replace(".", "_") == name
    )
    assert _messages(f"import torch\n{full}(a)\n")[0].endswith(
        f"`{full}` has no kernel for a TPU, and raises there: write `{INSTEAD[name]}`"
    )


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("torch.nn.Mish()", "mish"),
        ("torch.nn.HuberLoss()", "huber_loss"),
        ("torch.nn.SmoothL1Loss()", "smooth_l1_loss"),
    ],
)
def test_a_class_is_written_as_its_operator(call: str, name: str) -> None:
    assert INSTEAD[name] in _messages(f"import torch\n{call}\n")[0]


def _messages(source: str) -> list[str]:
    return [finding.message for finding in findings(source, Project("2.11"), RULES)]
