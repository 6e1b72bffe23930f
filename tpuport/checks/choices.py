"""Values that stay as they are on CUDA and on the CPU, and are another on other accelerators."""

import ast
from collections.abc import Iterator

from tpuport.checks.compile_mode import is_chosen_by_device
from tpuport.draft import Context, Draft, Role
from tpuport.model import Replace, Rule, Severity

KEPT_DEVICES = '("cuda", "cpu")'
"""The device types that keep what the code says."""

KEPT = f"{{device.type}} in {KEPT_DEVICES}"
OTHERS = f"{{device.type}} not in {KEPT_DEVICES}"


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


def kept(context: Context, rule: Rule, value: ast.expr, otherwise: str) -> Draft:
    """The value on CUDA and on the CPU, `otherwise` elsewhere; one that a test of the device chooses is right."""
    parent = context.module.parents[value]
    if isinstance(parent, ast.IfExp) and is_chosen_by_device(context, parent):
        return Draft(rule, value, Role.CUDA_ONLY, severity=Severity.INFO)
    span = context.module.span(value)
    return Draft(rule, value, Role.MOVES, (Replace(span, f"{{0}} if {KEPT} else {otherwise}", (span,)),))


def kept_on_cuda(context: Context, rule: Rule, value: ast.expr, otherwise: str) -> Draft:
    """As `kept`, for a value that only CUDA takes."""
    parent = context.module.parents[value]
    if isinstance(parent, ast.IfExp) and context.guards.tests_availability(parent.test):
        return Draft(rule, value, Role.CUDA_ONLY, severity=Severity.INFO)
    span = context.module.span(value)
    edit = Replace(span, f"{{0}} if torch.cuda.is_available() else {otherwise}", (span,))
    return Draft(rule, value, Role.MOVES, (edit,))
