"""`torch.cuda.amp.custom_fwd` and `custom_bwd` become those of `torch.amp`, for the device at hand."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rename, Replace, Rule, SetArgument

NAMES = {"torch.cuda.amp.custom_fwd": "torch.amp.custom_fwd", "torch.cuda.amp.custom_bwd": "torch.amp.custom_bwd"}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every use, as a bare decorator or called."""
    module = context.module
    for use in module.uses_of(NAMES.values()):
        yield from _named(context, rule, use.node)
    for use in module.uses_of(NAMES):
        span = module.span(use.node)
        rename = Rename(span, use.name, NAMES[use.name])
        call = module.call_of(use.node)
        if call is not None and not call.args:
            edit = SetArgument(module.span(call), "device_type", "{device.type}")
            yield Draft(rule, use.node, Role.MOVES, (rename, edit))
        elif call is None and use.node in getattr(module.parents[use.node], "decorator_list", ()):
            yield Draft(rule, use.node, Role.MOVES, (rename, Replace(span, "{0}(device_type={device.type})", (span,))))
        else:
            yield Draft(rule, use.node, Role.BLOCKS, reason="it is neither a decorator nor called with keywords")


def _named(context: Context, rule: Rule, node: ast.expr) -> Iterator[Draft]:
    """A draft for one of `torch.amp`'s own that is told of CUDA."""
    call = context.module.call_of(node)
    if call is not None and is_constant(argument(call, None, "device_type"), "cuda"):
        edit = SetArgument(context.module.span(call), "device_type", "{device.type}")
        yield Draft(rule, node, Role.MOVES, (edit,), message="it is for CUDA alone")
