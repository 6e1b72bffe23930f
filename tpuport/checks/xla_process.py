"""Which process this is, and how many there are."""

from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant
from tpuport.analysis.xla import MODEL, RUNTIME, only_takes
from tpuport.draft import Context, Draft, Role
from tpuport.model import Replace, Rule

RANK = (f"{MODEL}.get_ordinal", f"{RUNTIME}.global_ordinal")
LOCAL_RANK = (f"{MODEL}.get_local_ordinal", f"{RUNTIME}.local_ordinal")
WORLD_SIZE = (f"{MODEL}.xrt_world_size", f"{RUNTIME}.world_size")
DEVICES = (f"{RUNTIME}.global_device_count", f"{RUNTIME}.global_runtime_device_count")
_PROCESSES = "`DIST.get_rank()` and `DIST.get_world_size()` tell of processes, of which each drives one device"
_OWN = "`torch.accelerator.device_count()` is 1 in each process; `DIST.get_world_size()` counts them all"
ANSWERS = {
    **dict.fromkeys(DEVICES, "`DIST.get_world_size()` is as many, once each process drives one device"),
    **{f"{RUNTIME}.{name}": _PROCESSES for name in ("process_index", "process_count", "host_index")},
    **{f"{RUNTIME}.{name}": _OWN for name in ("local_device_count", "addressable_device_count", "local_process_count")},
    f"{RUNTIME}.addressable_runtime_device_count": _OWN,
    f"{MODEL}.xla_real_devices": _OWN,
    f"{MODEL}.get_xla_supported_devices": _OWN,
}
"""Questions whose answers are not the same by themselves, with what to ask; DIST is what the module calls it."""

IS_FIRST = f"{MODEL}.is_master_ordinal"


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every question about the processes."""
    module, xla = context.module, context.xla
    for use in xla.of(*RANK, *LOCAL_RANK, *WORLD_SIZE, *ANSWERS, IS_FIRST):
        call = module.call_of(use.node)
        if call is None:
            yield Draft(rule, use.node, Role.BLOCKS, reason="it is passed on without being called")
            continue
        if use.name in ANSWERS and not (use.name in DEVICES and xla.has_group(call)):
            yield Draft(rule, call, Role.BLOCKS, reason=ANSWERS[use.name].replace("DIST", xla.distributed))
            continue
        local = argument(call, 0, "local") if use.name == IS_FIRST else None
        expected = local is None or is_constant(local, True, False)
        if not expected or not only_takes(call, int(local is not None), "local"):
            yield Draft(rule, call, Role.BLOCKS, reason="its arguments are not followed")
            continue
        if use.name in RANK:
            new = xla.rank(call)
        elif use.name in (*WORLD_SIZE, *DEVICES):
            new = xla.world_size(call)
        elif use.name in LOCAL_RANK:
            new = f"{xla.distributed}.get_node_local_rank(0)"
        else:
            new = xla.is_first(call, local=not is_constant(local, False))
        yield Draft(rule, call, Role.MOVES, (Replace(module.span(call), new),))
