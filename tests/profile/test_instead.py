"""What is proposed in place of operators that a TPU lacks gives the same on the CPU."""

import ast
import math
from typing import Any

import pytest
import torch
from torch.nn import functional

from tpuport.checks.missing_kernel import FUNCTIONS, INSTEAD

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
def test_lint_finds_the_operator(name: str) -> None:
    names = {full.removeprefix("torch.").removeprefix("nn.functional.").replace(".", "_") for full in FUNCTIONS}
    assert name in names
