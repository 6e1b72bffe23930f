"""`torch.cuda.Event` becomes the generic `torch.Event`."""

from collections.abc import Iterator

from tpuport.draft import Context, Draft, Role
from tpuport.model import Rename, Rule

NAME = "torch.cuda.Event"
GENERIC_ARGUMENTS = {"enable_timing", "blocking"}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every use; only the arguments that both classes take are moved."""
    module = context.module
    for use in module.uses:
        if use.name != NAME:
            continue
        call = module.call_of(use.node)
        if call is None or call.args or not {k.arg for k in call.keywords} <= GENERIC_ARGUMENTS:
            yield Draft(
                rule, use.node, Role.BLOCKS, reason="only enable_timing and blocking exist on every accelerator"
            )
        else:
            yield Draft(rule, use.node, Role.MOVES, (Rename(module.span(use.node), NAME, "torch.Event"),))
