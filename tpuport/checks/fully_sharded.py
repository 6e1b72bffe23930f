"""`FullyShardedDataParallel`, the first kind of FSDP: a TPU runs the second, `fully_shard`."""

import ast
from collections.abc import Iterator

from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule, Severity

NAMES = (
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel",
)


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft where models are wrapped; the methods of wrapped models and tests for them go with that."""
    for use in context.module.uses:
        if use.name in NAMES and not _is_test(context, use.node):
            reason = "`torch.distributed.fsdp.fully_shard` shards the same parameters on every accelerator"
            yield Draft(rule, use.node, Role.BLOCKS, reason=reason)
        elif use.name.startswith(NAMES):
            reason = "it goes with the models that are wrapped"
            yield Draft(rule, use.node, Role.NEUTRAL, reason=reason, severity=Severity.INFO)


def _is_test(context: Context, node: ast.expr) -> bool:
    parent = context.module.parents[node]
    if isinstance(parent, ast.Tuple):
        parent = context.module.parents[parent]
    return isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "isinstance"
