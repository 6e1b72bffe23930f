"""CUDA's autocast becomes autocast of the device at hand: float16 on CUDA as before, bfloat16 elsewhere, off on CPU."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant, is_unpacked
from tpuport.analysis.devices import cuda_device
from tpuport.analysis.guards import atoms
from tpuport.draft import Context, Draft, Role
from tpuport.model import DropArgument, Edit, InsertArgument, Rename, Replace, Rule, SetArgument, Severity

CUDA_FORM = "torch.cuda.amp.autocast"
GENERIC = ("torch.autocast", "torch.amp.autocast")
HALF = ("torch.float16", "torch.half")


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every CUDA autocast, in either spelling."""
    for use in context.module.uses_of((CUDA_FORM, *GENERIC)):
        if use.name == CUDA_FORM:
            yield _cuda_form(context, rule, use.node)
        else:
            call = context.module.call_of(use.node)
            first = argument(call, 0, "device_type") if call else None
            if call is not None and first is not None and cuda_device(context.module, first):
                yield _generic_form(context, rule, call, first)
            elif call is not None and first is not None and _takes_default_dtype(call, first):
                edit = SetArgument(context.module.span(call), "dtype", "{autocast_dtype}")
                message = "autocast with no dtype computes in float16 on a TPU, without the gradient scaling that needs"
                yield Draft(rule, call, Role.MOVES, (edit,), message, severity=Severity.WARNING)


def _cuda_form(context: Context, rule: Rule, node: ast.expr) -> Draft:
    module = context.module
    call = module.call_of(node)
    if call is None:
        return Draft(rule, node, Role.BLOCKS, reason="it is passed on without being called")
    if is_unpacked(call):
        return Draft(rule, node, Role.BLOCKS, reason="its arguments are unpacked from a variable")
    span = module.span(call)
    edits: list[Edit] = [Rename(module.span(node), CUDA_FORM, "torch.amp.autocast")]
    names = ("enabled", "dtype", "cache_enabled")
    for name, value in zip(names, call.args, strict=False):
        edits.append(DropArgument(span, module.span(value)))
        if name == "cache_enabled":
            edits.append(SetArgument(span, name, "{0}", (module.span(value),)))
    edits.append(InsertArgument(span, "{device.type}"))
    enabled, dtype = argument(call, 0, "enabled"), argument(call, 1, "dtype")
    return Draft(rule, node, Role.MOVES, (*edits, *_precision(context, call, enabled, dtype)))


def _generic_form(context: Context, rule: Rule, call: ast.Call, first: ast.expr) -> Draft:
    if is_unpacked(call) or len(call.args) > 1:
        return Draft(rule, call, Role.BLOCKS, reason="its arguments are not named")
    edits = (Replace(context.module.span(first), "{device.type}"),)
    enabled, dtype = argument(call, None, "enabled"), argument(call, None, "dtype")
    return Draft(rule, call, Role.MOVES, (*edits, *_precision(context, call, enabled, dtype)))


def _takes_default_dtype(call: ast.Call, device: ast.expr) -> bool:
    """Whether autocast for a device that is not written out leaves its dtype to the device."""
    if isinstance(device, ast.Constant) or is_unpacked(call) or len(call.args) > 1:
        return False
    return argument(call, None, "dtype") is None and not is_constant(argument(call, None, "enabled"), False)


def _precision(
    context: Context, call: ast.Call, enabled: ast.expr | None, dtype: ast.expr | None
) -> Iterator[SetArgument]:
    module = context.module
    span = module.span(call)
    if is_constant(enabled, False):
        if enabled in call.args:
            yield SetArgument(span, "enabled", "False")
        return
    if dtype is None or is_constant(dtype, None):
        yield SetArgument(span, "dtype", "{autocast_dtype}")
    elif module.qualified(dtype) in HALF:
        yield SetArgument(span, "dtype", "{half_dtype}")
    elif dtype in call.args:
        yield SetArgument(span, "dtype", "{0}", (module.span(dtype),))
    off_on_cpu = '{device.type} != "cpu"'
    if context.guards.has_accelerator(call):
        off_on_cpu = ""
    if enabled is None or is_constant(enabled, True):
        if off_on_cpu:
            yield SetArgument(span, "enabled", off_on_cpu)
    elif off_on_cpu and not _implies_accelerator(context, enabled):
        yield SetArgument(span, "enabled", f"{{0}} and {off_on_cpu}", (module.span(enabled),))
    elif enabled in call.args:
        yield SetArgument(span, "enabled", "{0}", (module.span(enabled),))


def _implies_accelerator(context: Context, enabled: ast.expr) -> bool:
    return any(context.guards.cuda_sources(condition) for condition in atoms(enabled, True))
