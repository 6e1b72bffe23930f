"""Gradient scaling stays what it is on CUDA and turns itself off elsewhere."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant
from tpuport.analysis.module import dotted
from tpuport.draft import Context, Draft, Role
from tpuport.model import InsertArgument, Rename, Replace, Rule, Severity

CUDA_FORM = "torch.cuda.amp.GradScaler"
GENERIC = ("torch.amp.GradScaler", "torch.GradScaler")


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for CUDA's own scaler, and for a generic one whose device is not written out."""
    module = context.module
    for use in module.uses_of((CUDA_FORM, *GENERIC)):
        call = module.call_of(use.node)
        if use.name == CUDA_FORM:
            edits: tuple[Rename | InsertArgument, ...] = (
                Rename(module.span(use.node), CUDA_FORM, "torch.amp.GradScaler"),
            )
            if call is not None and call.args:
                edits += (InsertArgument(module.span(call), '"cuda"'),)
            yield Draft(rule, use.node, Role.MOVES, edits)
        elif call is not None:
            device = argument(call, 0, "device")
            if device is not None and not isinstance(device, ast.Constant):
                reason = (
                    'on a TPU its step() raises: write GradScaler("cuda", enabled=...), which turns itself off there'
                )
                yield Draft(rule, device, Role.NEUTRAL, reason=reason)
    for call in module.calls_by_method.get("state_dict", []):
        read = module.parents[call]
        if _is_scaler(call) and isinstance(read, ast.Subscript) and is_constant(read.slice, "scale"):
            holes = (module.span(call), module.span(read.slice))
            edit = Replace(module.span(read), "{0}.get({1}, 1.0)", holes)
            message = "a scaler that is turned off has no state, so this key is missing on a TPU"
            yield Draft(rule, read, Role.MOVES, (edit,), message=message, severity=Severity.ERROR, min_torch="")


def _is_scaler(call: ast.Call) -> bool:
    """Whether the receiver's name says that it scales gradients: a scaler, or what wraps one and hands its state on."""
    owner = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    return owner.lower().endswith("scaler") and not call.args and not call.keywords
