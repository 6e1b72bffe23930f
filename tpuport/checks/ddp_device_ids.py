"""`DistributedDataParallel(m, device_ids=[rank])` names CUDA devices; elsewhere each process has one device."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant
from tpuport.draft import Context, Draft, Role
from tpuport.model import Edit, Replace, Rule

NAMES = ("torch.nn.parallel.DistributedDataParallel", "torch.nn.DistributedDataParallel")
PARAMETERS = ((1, "device_ids"), (2, "output_device"))


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every construction that passes device numbers."""
    module = context.module
    for call in module.of_type(ast.Call):
        if module.callee(call) not in NAMES:
            continue
        edits: list[Edit] = []
        settled = False
        for position, name in PARAMETERS:
            value = argument(call, position, name)
            if value is None or is_constant(value, None):
                continue
            if isinstance(value, ast.IfExp) and context.guards.tests_availability(value.test):
                settled = True
                continue
            span = module.span(value)
            edits.append(Replace(span, "{0} if torch.cuda.is_available() else None", (span,)))
        if edits:
            yield Draft(rule, call, Role.MOVES, tuple(edits))
        elif settled:
            for test in (argument(call, position, name) for position, name in PARAMETERS):
                if isinstance(test, ast.IfExp):
                    yield Draft(rule, test.body, Role.CUDA_ONLY)
