"""`torch.cuda.current_stream` moves where the file orders no CUDA streams by hand."""

from collections.abc import Iterator

from tpuport.draft import Context, Draft, Role
from tpuport.model import Rename, Rule

NAMES = {
    "torch.cuda.current_stream": "torch.accelerator.current_stream",
    "torch.cuda.set_stream": "torch.accelerator.set_stream",
}
OWN_STREAMS = {"torch.cuda.Stream", "torch.cuda.stream", "torch.cuda.StreamContext", "torch.cuda.ExternalStream"}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every use; beside CUDA streams of its own the file's streams stay together."""
    module = context.module
    own = any(use.name in OWN_STREAMS for use in module.uses)
    for use in module.uses:
        if use.name not in NAMES:
            continue
        if own:
            reason = "it belongs to the CUDA streams that this file makes, and stays with them"
            yield Draft(rule, use.node, Role.BLOCKS, reason=reason)
        else:
            yield Draft(rule, use.node, Role.MOVES, (Rename(module.span(use.node), use.name, NAMES[use.name]),))
