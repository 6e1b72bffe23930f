"""`FullyShardedDataParallel`, the first kind of FSDP: a TPU runs the second, `fully_shard`."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule, Severity

NAMES = (
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel",
)

ARGUMENTS = {
    "auto_wrap_policy": (4, "call it on each block first, then on the model"),
    "sharding_strategy": (2, "`reshard_after_forward=`, True for FULL_SHARD and False for SHARD_GRAD_OP"),
    "mixed_precision": (6, "`mp_policy=MixedPrecisionPolicy(...)`"),
    "cpu_offload": (3, "`offload_policy=CPUOffloadPolicy()`"),
    "process_group": (1, "`mesh=`"),
    "device_mesh": (None, "`mesh=`"),
    "ignored_modules": (7, "`ignored_params=`"),
    "ignored_states": (None, "`ignored_params=`"),
    "device_id": (9, "nothing, as the mesh says the device"),
    "sync_module_states": (10, "`set_model_state_dict` with `broadcast_from_rank0=True`"),
}
"""What `fully_shard` takes in the place of each argument, with the argument's position after the model."""


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft where models are wrapped; the methods of wrapped models and tests for them go with that."""
    for use in context.module.uses:
        if use.name in NAMES and not _is_test(context, use.node):
            yield Draft(rule, use.node, Role.BLOCKS, reason=_answer(context.module.call_of(use.node)))
        elif use.name.startswith(NAMES):
            reason = "it goes with the models that are wrapped"
            yield Draft(rule, use.node, Role.NEUTRAL, reason=reason, severity=Severity.INFO)


def _is_test(context: Context, node: ast.expr) -> bool:
    parent = context.module.parents[node]
    if isinstance(parent, ast.Tuple):
        parent = context.module.parents[parent]
    return isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "isinstance"


def _answer(call: ast.Call | None) -> str:
    """What to write instead, with the counterpart of each argument that is passed."""
    reason = "`torch.distributed.fsdp.fully_shard` shards the same parameters on every accelerator"
    passed = [(n, new) for n, (at, new) in ARGUMENTS.items() if call is not None and argument(call, at, n) is not None]
    told = "; ".join(f"for `{name}`, {new}" for name, new in passed)
    return f"{reason} ({told})" if told else reason
