"""`with torch.cuda.device(i):` makes a device current; elsewhere a process has one device."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant, is_unpacked
from tpuport.draft import Context, Draft, Role
from tpuport.model import Replace, Rule, Severity

NAME = "torch.cuda.device"
NO_DEVICE = "-1"
"""With a negative number the context does nothing, as its documentation says, also where there is no CUDA."""


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every use; the argument becomes a number that changes nothing where CUDA is not there."""
    module = context.module
    for use in module.uses_of((NAME,)):
        call = module.call_of(use.node)
        value = argument(call, 0, "device") if call is not None and not is_unpacked(call) else None
        if value is None:
            yield Draft(rule, use.node, Role.BLOCKS, reason="which device it makes current is not written in a call")
        elif isinstance(value, ast.IfExp) and context.guards.tests_availability(value.test):
            yield Draft(rule, use.node, Role.NEUTRAL, severity=Severity.INFO)
            yield Draft(rule, value.body, Role.CUDA_ONLY, severity=Severity.INFO)
        elif is_constant(value, None):
            yield Draft(rule, use.node, Role.BLOCKS, reason="without a device it raises where there is no CUDA")
        else:
            span = module.span(value)
            edit = Replace(span, f"{{0}} if torch.cuda.is_available() else {NO_DEVICE}", (span,))
            yield Draft(rule, use.node, Role.CUDA_ONLY, own_guard=(edit,))
