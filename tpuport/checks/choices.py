"""Values that stay as they are on CUDA and on the CPU, and are another on other accelerators."""

import ast
from collections.abc import Iterator

from tpuport.draft import Context, Draft, Role
from tpuport.model import Replace, Rule, Severity

_DEVICES = '("cuda", "cpu")'
KEPT = f"{{device.type}} in {_DEVICES}"
"""Holds on the devices that keep what the code says."""

OTHERS = f"{{device.type}} not in {_DEVICES}"
"""Holds on the others."""


def arms(value: ast.expr) -> Iterator[ast.Constant]:
    """The literals that an expression may come to, without those that a test of the device chooses already."""
    match value:
        case ast.Constant():
            yield value
        case ast.IfExp(body=body, orelse=orelse):
            yield from arms(body)
            yield from arms(orelse)
        case ast.BoolOp(values=values):
            for one in values:
                yield from arms(one)


def is_chosen_by_device(context: Context, choice: ast.IfExp) -> bool:
    """Whether a choice is made by a test of the device already."""
    test = choice.test
    listed = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.In | ast.NotIn)
    return context.guards.tests_availability(test) or listed


def keeping(context: Context, value: ast.expr, otherwise: str) -> Replace:
    """The edit that keeps a value on CUDA and on the CPU, and puts `otherwise` elsewhere."""
    span = context.module.span(value)
    return Replace(span, f"{{0}} if {KEPT} else {otherwise}", (span,))


def kept(context: Context, rule: Rule, value: ast.expr, otherwise: str) -> Draft:
    """The value on CUDA and on the CPU, `otherwise` elsewhere; one that a test of the device chooses is right."""
    parent = context.module.parents[value]
    if isinstance(parent, ast.IfExp) and is_chosen_by_device(context, parent):
        return Draft(rule, value, Role.CUDA_ONLY, severity=Severity.INFO)
    return Draft(rule, value, Role.MOVES, (keeping(context, value, otherwise),))


def kept_on_cuda(context: Context, rule: Rule, value: ast.expr, otherwise: str) -> Draft:
    """As `kept`, for a value that only CUDA takes."""
    parent = context.module.parents[value]
    if isinstance(parent, ast.IfExp) and context.guards.tests_availability(parent.test):
        return Draft(rule, value, Role.CUDA_ONLY, severity=Severity.INFO)
    span = context.module.span(value)
    edit = Replace(span, f"{{0}} if torch.cuda.is_available() else {otherwise}", (span,))
    return Draft(rule, value, Role.MOVES, (edit,))
