"""Mixed precision of PyTorch/XLA: its autocast computes in bfloat16 on a TPU."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant, is_unpacked
from tpuport.analysis.module import dotted
from tpuport.analysis.xla import only_takes
from tpuport.draft import Context, Draft, Role
from tpuport.model import Edit, Replace, Rule, SetArgument, Span

AUTOCAST = ("torch_xla.amp.autocast", "torch_xla.amp.autocast_mode.autocast")
GENERIC = ("torch.autocast", "torch.amp.autocast")
SCALERS = ("torch_xla.amp.GradScaler", "torch_xla.amp.grad_scaler.GradScaler")
OPTIMIZERS = {
    f"torch_xla.amp.syncfree.{prefix}{name}": f"torch.optim.{name}"
    for name in ("Adam", "AdamW", "SGD")
    for prefix in ("", f"{name.lower()}.")
}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every autocast, scaler and optimizer of `torch_xla.amp`, and for autocast of "xla"."""
    module = context.module
    for use in context.xla.of(*AUTOCAST, *SCALERS, *OPTIMIZERS):
        call = module.call_of(use.node)
        if use.name in OPTIMIZERS:
            yield Draft(rule, use.node, Role.MOVES, (Replace(module.span(use.node), OPTIMIZERS[use.name]),))
        elif use.name in SCALERS:
            reason = "bfloat16, in which a TPU computes, needs no scaling of the loss: leave the scaler out"
            yield Draft(rule, use.node, Role.BLOCKS, reason=reason)
        elif call is None:
            yield Draft(rule, use.node, Role.BLOCKS, reason="it is passed on without being called")
        else:
            yield _autocast(context, rule, call)
    for call in module.calls_of(*GENERIC):
        if is_constant(argument(call, 0, "device_type"), "xla"):
            yield _generic(context, rule, call)


def _autocast(context: Context, rule: Rule, call: ast.Call) -> Draft:
    module = context.module
    device = argument(call, 0, "device")
    if device is None or not only_takes(call, 1, "device", "enabled", "dtype", "cache_enabled"):
        return Draft(rule, call, Role.BLOCKS, reason="its arguments are not named")
    kind = "{0}.type" if dotted(device) else "{device.type}"
    holes: tuple[Span, ...] = (module.span(device),) if dotted(device) else ()
    if not dotted(device) and not isinstance(device, ast.Call):
        return Draft(rule, call, Role.BLOCKS, reason="its device is not followed")
    passed = "".join(
        f", {keyword.arg}={{{len(holes) + number}}}"
        for number, keyword in enumerate(k for k in call.keywords if k.arg != "device")
    )
    holes += tuple(module.span(keyword.value) for keyword in call.keywords if keyword.arg != "device")
    if argument(call, None, "dtype") is None:
        passed += ", dtype=torch.bfloat16"
    return Draft(rule, call, Role.MOVES, (Replace(module.span(call), f"torch.autocast({kind}{passed})", holes),))


def _generic(context: Context, rule: Rule, call: ast.Call) -> Draft:
    module = context.module
    kind = argument(call, 0, "device_type")
    if kind is None or is_unpacked(call) or len(call.args) > 1:
        return Draft(rule, call, Role.BLOCKS, reason="its arguments are not named")
    edits: list[Edit] = [Replace(module.span(kind), "{device.type}")]
    if argument(call, None, "dtype") is None:
        edits.append(SetArgument(module.span(call), "dtype", "torch.bfloat16"))
    return Draft(rule, call, Role.MOVES, tuple(edits))
