"""Which process this is, and how many there are."""

from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant
from tpuport.analysis.xla import MODEL, RUNTIME, only_takes
from tpuport.draft import Context, Draft, Role
from tpuport.model import Replace, Rule

RANK = (f"{MODEL}.get_ordinal", f"{RUNTIME}.global_ordinal")
LOCAL_RANK = (f"{MODEL}.get_local_ordinal", f"{RUNTIME}.local_ordinal")
WORLD_SIZE = (f"{MODEL}.xrt_world_size", f"{RUNTIME}.world_size")
IS_FIRST = f"{MODEL}.is_master_ordinal"


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every question about the processes."""
    module, xla = context.module, context.xla
    for use in xla.of(*RANK, *LOCAL_RANK, *WORLD_SIZE, IS_FIRST):
        call = module.call_of(use.node)
        if call is None:
            yield Draft(rule, use.node, Role.BLOCKS, reason="it is passed on without being called")
            continue
        local = argument(call, 0, "local") if use.name == IS_FIRST else None
        expected = local is None or is_constant(local, True, False)
        if not expected or not only_takes(call, int(local is not None), "local"):
            yield Draft(rule, call, Role.BLOCKS, reason="its arguments are not followed")
            continue
        if use.name in RANK:
            new = xla.rank(call)
        elif use.name in WORLD_SIZE:
            new = xla.world_size(call)
        elif use.name in LOCAL_RANK:
            new = f"{xla.distributed}.get_node_local_rank(0)"
        else:
            new = xla.is_first(call, local=not is_constant(local, False))
        yield Draft(rule, call, Role.MOVES, (Replace(module.span(call), new),))
