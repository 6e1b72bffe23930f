"""`init_process_group(device_id=...)`: a group is bound to a device by its number, which only CUDA's has here."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant, is_unpacked
from tpuport.analysis.devices import cuda_device
from tpuport.checks.nccl_backend import DEFAULT, INIT
from tpuport.draft import Context, Draft, Role
from tpuport.model import Edit, Replace, Rule, SetArgument, Severity


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every group that is bound to a device; one that a test for CUDA chooses is right as it is."""
    module = context.module
    for call in module.calls_of(INIT):
        value = argument(call, None, "device_id")
        if value is None or is_constant(value, None):
            continue
        if isinstance(value, ast.IfExp) and context.guards.tests_availability(value.test):
            yield Draft(rule, value.body, Role.CUDA_ONLY)
        elif _is_for_cuda(context, call, value):
            span = module.span(value)
            edits: tuple[Edit, ...] = (Replace(span, "{0} if torch.cuda.is_available() else None", (span,)),)
            if not is_unpacked(call) and argument(call, 0, "backend") is None:
                edits += (SetArgument(module.span(call), "backend", DEFAULT),)
            yield Draft(rule, value, Role.MOVES, edits)
        else:
            reason = "on a TPU it is the device with its index, 0 in every process, or None"
            yield Draft(rule, value, Role.NEUTRAL, reason=reason, severity=Severity.INFO)


def _is_for_cuda(context: Context, call: ast.Call, value: ast.expr) -> bool:
    """Whether the group is CUDA's: by its backend, or by the device that it is bound to."""
    module = context.module
    backend = argument(call, 0, "backend")
    if backend is not None and (is_constant(backend, "nccl", "NCCL") or module.qualified(backend).endswith(".NCCL")):
        return True
    if isinstance(value, ast.Name):
        value = module.only_value(value) or value
    if isinstance(value, ast.Call) and module.callee(value) == "torch.cuda.current_device":
        return True
    return cuda_device(module, value) is not None
