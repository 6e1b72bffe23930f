"""`torch.cuda.Event` becomes the generic `torch.Event`."""

from collections.abc import Iterator

from tpuport.analysis.module import Module, Use
from tpuport.checks.current_stream import OWN_STREAMS
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rename, Rule

NAME = "torch.cuda.Event"
GENERIC_ARGUMENTS = {"enable_timing", "blocking"}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every use. All events of a file move or none: one kind does not measure against the other."""
    module = context.module
    events = module.uses_of((NAME,))
    streams = module.uses_of((*OWN_STREAMS, "torch.cuda.CUDAGraph"))
    stays = streams or [use for use in events if not _is_generic(module, use)]
    for use in events:
        if use in stays:
            reason = "only events made with enable_timing and blocking, by name, exist on every accelerator"
            yield Draft(rule, use.node, Role.BLOCKS, reason=reason)
        elif stays:
            reason = f"it stays with what line {module.span(stays[0].node).line} makes, which can not move"
            yield Draft(rule, use.node, Role.BLOCKS, reason=reason)
        else:
            yield Draft(rule, use.node, Role.MOVES, (Rename(module.span(use.node), NAME, "torch.Event"),))


def _is_generic(module: Module, use: Use) -> bool:
    call = module.call_of(use.node)
    return call is not None and not call.args and {k.arg for k in call.keywords} <= GENERIC_ARGUMENTS
