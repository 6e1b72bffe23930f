"""Helpers of PyTorch/XLA that have nothing to do with its devices."""

from collections.abc import Iterator

from tpuport.analysis.xla import MODEL, only_takes
from tpuport.draft import Context, Draft, Role
from tpuport.model import Replace, Rule

PROCESSES = "torch_xla.distributed.xla_multiprocessing"
CLASSES = {f"{MODEL}.RateTracker": "{rate_tracker}", f"{PROCESSES}.MpSerialExecutor": "{serial_executor}"}
OTHERS = {
    f"{PROCESSES}.MpModelWrapper": "each process makes the model anew: seed them alike, and move the model itself",
    "torch_xla.utils.utils.SampleGenerator": "a list of one batch, repeated, or a dataset of zeros does the same",
    f"{MODEL}.get_memory_info": "`torch.accelerator.get_memory_info()` gives free and total bytes",
}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every helper: those that a few lines stand for are written out, for others an answer is given."""
    module = context.module
    for use in context.xla.of(*CLASSES, *OTHERS):
        call = module.call_of(use.node)
        if use.name in OTHERS:
            yield Draft(rule, call or use.node, Role.BLOCKS, reason=OTHERS[use.name])
        elif call is None or not only_takes(call, 1, "smooth_factor"):
            yield Draft(rule, use.node, Role.BLOCKS, reason="it is more than made here")
        else:
            edit = Replace(module.span(use.node), CLASSES[use.name])
            yield Draft(rule, call, Role.MOVES, (edit,))
