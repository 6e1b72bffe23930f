"""Loaders whose last batch is smaller: a TPU compiles the step once more for it."""

from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant, is_unpacked
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule

POSITION = 8
"""Of `drop_last` among the parameters of a DataLoader."""


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every shuffling `DataLoader`, one to train with, that keeps the last batch."""
    module = context.module
    for call in module.calls_of("torch.utils.data.DataLoader"):
        if is_unpacked(call):
            continue
        drops = argument(call, POSITION, "drop_last")
        shuffles = is_constant(argument(call, 2, "shuffle"), True)
        batches = any(keyword.arg == "batch_sampler" for keyword in call.keywords)
        if shuffles and not batches and (drops is None or is_constant(drops, False)):
            yield Draft(rule, call, Role.NEUTRAL)
