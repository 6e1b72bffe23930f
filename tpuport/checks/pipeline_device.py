"""`pipeline(device=0)`: transformers takes a number for a CUDA device, and the CPU where it knows no other."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_unpacked
from tpuport.analysis.frameworks import is_pipeline
from tpuport.draft import Context, Draft, Role
from tpuport.model import Replace, Rule, Severity


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every pipeline on a numbered device, or on none that is named."""
    module = context.module
    for call in module.of_type(ast.Call):
        if not is_pipeline(module.callee(call)) or is_unpacked(call):
            continue
        value = argument(call, None, "device")
        if value is None and argument(call, None, "device_map") is None:
            reason = "pass `device=`"
            message = "with no device named, a pipeline stays on the CPU of a TPU host"
            yield Draft(rule, call, Role.NEUTRAL, message=message, reason=reason, severity=Severity.WARNING)
        elif _number(value) is not None:
            assert value is not None
            span = module.span(value)
            edit = Replace(span, "{0} if torch.cuda.is_available() else {device}", (span,))
            yield Draft(rule, value, Role.MOVES, (edit,))
        elif isinstance(value, ast.IfExp) and _number(value.body) is not None:
            yield from _chosen(context, rule, value)


def _chosen(context: Context, rule: Rule, value: ast.IfExp) -> Iterator[Draft]:
    if context.guards.tests_availability(value.test):
        numbered = _is_cpu(value.orelse)
        edits = (Replace(context.module.span(value.orelse), "{device}"),) if numbered else ()
        yield Draft(rule, value.body, Role.CUDA_ONLY, edits)


def _is_cpu(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and _number(node.operand) == 1


def _number(node: ast.expr | None) -> int | None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return None
