"""Ends of a lazy step: `xm.mark_step()`, `torch_xla.sync()`, `with torch_xla.step():`."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant
from tpuport.analysis.xla import MODEL, RUNTIME
from tpuport.draft import Context, Draft, Role
from tpuport.mapping import ACCELERATOR_THERE
from tpuport.model import Edit, GuardStatement, RemoveStatement, Replace, Rule, UnwrapWith

ENDS = (f"{MODEL}.mark_step", "torch_xla.sync")
WAITS = f"{MODEL}.wait_device_ops"
STEP = "torch_xla.step"
CACHE = f"{RUNTIME}.initialize_cache"
EAGER = ("torch_xla.experimental.eager_mode", "torch_xla.experimental.eager.eager_mode")


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every place where a step of lazy tensors ends, or is set up."""
    module = context.module
    for use in context.xla.of(*ENDS, WAITS, CACHE, *EAGER):
        call = module.call_of(use.node)
        if call is None:
            yield Draft(rule, use.node, Role.BLOCKS, reason="it is passed on without being called")
        elif not module.is_bare(call):
            yield Draft(rule, call, Role.BLOCKS, reason="its value is used")
        elif use.name in EAGER and not is_constant(argument(call, 0, "enable"), True):
            yield Draft(rule, call, Role.BLOCKS, reason="lazy steps are asked for")
        else:
            yield Draft(rule, call, Role.MOVES, _edits(context, call, use.name))
    for use in context.xla.of(STEP):
        call = module.call_of(use.node)
        block = module.parents.get(module.parents[call]) if call is not None else None
        if (
            call is not None
            and isinstance(block, ast.With)
            and len(block.items) == 1
            and not block.items[0].optional_vars
        ):
            yield Draft(rule, call, Role.MOVES, (UnwrapWith(module.span(block)),))
        else:
            yield Draft(rule, use.node, Role.BLOCKS, reason="only `with torch_xla.step():` has a counterpart: its body")


def _edits(context: Context, call: ast.Call, name: str) -> tuple[Edit, ...]:
    module = context.module
    span = module.span(module.statement(call))
    wait = argument(call, 0, "wait") if name in ENDS else None
    if name != WAITS and (wait is None or is_constant(wait, False)):
        return (RemoveStatement(span),)
    return (Replace(module.span(call), "torch.accelerator.synchronize()"), GuardStatement(span, ACCELERATOR_THERE))
