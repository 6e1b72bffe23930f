"""`torch.cuda.is_available` where it is not called. Calls are settled with what they guard (see `tpuport.settle`)."""

from collections.abc import Iterator

from tpuport.analysis.guards import CUDA_AVAILABLE
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every reference to the function itself."""
    for use in context.module.uses_of((CUDA_AVAILABLE,)):
        if context.module.call_of(use.node) is None:
            yield Draft(rule, use.node, Role.BLOCKS, reason="it is passed on or replaced without being called")
