"""`DistributedDataParallel(m, device_ids=[rank])` names CUDA devices; elsewhere each process has one device."""

import ast
from collections.abc import Iterator, Sequence

from tpuport.analysis.calls import argument, is_constant
from tpuport.draft import Context, Draft, Role
from tpuport.model import Edit, Replace, Rule, Severity

NAMES = ("torch.nn.parallel.DistributedDataParallel", "torch.nn.DistributedDataParallel")
PARAMETERS: dict[str, tuple[tuple[int | None, str], ...]] = {
    **dict.fromkeys(NAMES, ((1, "device_ids"), (2, "output_device"))),
    "torch.distributed.barrier": ((2, "device_ids"),),
}
"""Where each callable takes device numbers: by position and by name."""


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every construction that passes device numbers."""
    module = context.module
    for call in module.calls_of(*PARAMETERS):
        parameters = PARAMETERS[module.callee(call)]
        edits: list[Edit] = []
        settled = False
        for position, name in parameters:
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
            for test in (argument(call, position, name) for position, name in parameters):
                if isinstance(test, ast.IfExp):
                    yield Draft(rule, test.body, Role.CUDA_ONLY)
    given = module.passed_as("device_ids")
    if given and any(use.name.startswith("torch") for use in module.uses):
        yield from _unknown(context, rule, given)


def _unknown(context: Context, rule: Rule, given: Sequence[tuple[ast.Call, ast.keyword]]) -> Iterator[Draft]:
    """A draft for device numbers that go to something unknown, a wrapper of the project's own perhaps."""
    for call, keyword in given:
        callee = context.module.callee(call)
        known = callee in PARAMETERS or callee.startswith("torch.nn.")
        settled = isinstance(keyword.value, ast.IfExp) and context.guards.tests_availability(keyword.value.test)
        if not known and not settled and not is_constant(keyword.value, None):
            reason = "what takes them is not known: it has to get None where there is no CUDA"
            yield Draft(rule, keyword.value, Role.NEUTRAL, reason=reason, severity=Severity.WARNING)
