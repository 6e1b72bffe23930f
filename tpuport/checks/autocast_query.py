"""Questions about autocast that are asked of CUDA when no device type is named."""

import ast
from collections.abc import Iterator

from tpuport.draft import Context, Draft, Role
from tpuport.model import InsertArgument, Rename, Rule

QUESTIONS = {
    "torch.get_autocast_gpu_dtype": "torch.get_autocast_dtype",
    "torch.is_autocast_enabled": "torch.is_autocast_enabled",
}
SETTERS = ("torch.set_autocast_gpu_dtype", "torch.set_autocast_enabled", "torch.cuda.amp.common")
ON_CPU_AS_BEFORE = '{device.type} if {device.type} != "cpu" else "cuda"'


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every question that means CUDA, and for what sets CUDA's autocast by hand."""
    module = context.module
    for use in module.uses:
        if use.name not in QUESTIONS and not use.name.startswith(SETTERS):
            continue
        call = module.call_of(use.node)
        message = rule.message.replace("{name}", use.name)
        if use.name in QUESTIONS:
            if call is None:
                yield Draft(rule, use.node, Role.BLOCKS, message=message, reason="it is passed on without being called")
            elif not call.args and not call.keywords:
                span = module.span(call)
                known = context.guards.has_accelerator(call)
                asked = InsertArgument(span, "{device.type}" if known else ON_CPU_AS_BEFORE)
                edits: tuple[InsertArgument | Rename, ...] = (asked,)
                if use.name != QUESTIONS[use.name]:
                    edits = (Rename(module.span(use.node), use.name, QUESTIONS[use.name]), asked)
                yield Draft(rule, use.node, Role.MOVES, edits, message)
        elif not _names_device(use.name, call):
            reason = "`torch.autocast(device.type, dtype=...)` sets both for a block of code on any device"
            yield Draft(rule, use.node, Role.BLOCKS, message=message, reason=reason)


def _names_device(name: str, call: ast.Call | None) -> bool:
    return name == "torch.set_autocast_enabled" and call is not None and len(call.args) + len(call.keywords) > 1
