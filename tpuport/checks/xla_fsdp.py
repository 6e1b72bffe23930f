"""FSDP of PyTorch/XLA, and optimizers that it shards, with what `fully_shard` has for each argument."""

import ast
from collections.abc import Iterator

from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule

_PACKAGE = "torch_xla.distributed.fsdp"
WRAPPER = (
    f"{_PACKAGE}.XlaFullyShardedDataParallel",
    f"{_PACKAGE}.xla_fully_sharded_data_parallel.XlaFullyShardedDataParallel",
)
_BLOCKS_FIRST = "call it on each block first, then on the model"
_NOTHING = "nothing"
ARGUMENTS = {
    "reshard_after_forward": "the same",
    "disable_reshard_on_root": "`reshard_after_forward=False` for the model itself",
    "auto_wrap_policy": _BLOCKS_FIRST,
    "auto_wrapper_callable": "`torch.utils.checkpoint` in the blocks, and then `fully_shard` on each",
    "compute_dtype": "`mp_policy=MixedPrecisionPolicy(param_dtype=...)`",
    "fp32_reduce_scatter": "`mp_policy=MixedPrecisionPolicy(reduce_dtype=torch.float32)`",
    "buffer_dtype": "a cast of the buffers",
    "sharding_groups": "`mesh=`",
    "sharding_rank": "`mesh=`",
    "sharding_world_size": "`mesh=`",
    "flatten_parameters": _NOTHING,
    "execute_sharding_on_init": _NOTHING,
    "optimization_barrier_in_forward": _NOTHING,
    "optimization_barrier_in_backward": _NOTHING,
    "mark_step_on_finalization": _NOTHING,
    "pin_layout_in_collective_ops": _NOTHING,
    "shard_param_on_dim_0": _NOTHING,
    "coalesce_all_gather_ops": _NOTHING,
}
"""What `fully_shard` takes in the place of each argument."""

_WRAPS = "`torch.distributed.fsdp.fully_shard` shards the same parameters, in place"
_JOIN = (
    "join the files that are there while torch_xla is; from then on `get_model_state_dict` of "
    "torch.distributed.checkpoint.state_dict gives the whole with `full_state_dict=True`"
)
ANSWERS = {
    "checkpoint_module": "`torch.utils.checkpoint.checkpoint` around the call of a block",
    "consolidate_sharded_model_checkpoints": _JOIN,
    "consolidate_sharded_ckpts": _JOIN,
    "size_based_auto_wrap_policy": _BLOCKS_FIRST.replace("it", "`fully_shard`"),
    "transformer_auto_wrap_policy": _BLOCKS_FIRST.replace("it", "`fully_shard`"),
    "always_wrap_policy": _BLOCKS_FIRST.replace("it", "`fully_shard`"),
    "recursive_wrap": _BLOCKS_FIRST.replace("it", "`fully_shard`"),
    "ZeroRedundancyOptimizer": "`torch.distributed.optim.ZeroRedundancyOptimizer`, or `fully_shard` for parameters too",
}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every such name: where a model is wrapped, with the counterpart of each argument."""
    for use in context.xla.uses:
        name = use.name.rpartition(".")[2]
        in_package = use.name.startswith((f"{_PACKAGE}.", "torch_xla.distributed.zero_redundancy_optimizer."))
        message = rule.message.replace("{name}", use.name)
        call = context.module.call_of(use.node)
        if use.name in WRAPPER:
            yield Draft(rule, use.node, Role.BLOCKS, message=message, reason=_answer(call))
        elif in_package and name in ANSWERS:
            yield Draft(rule, use.node, Role.BLOCKS, message=message, reason=ANSWERS[name])
        elif use.name.startswith(WRAPPER):
            reason = "it goes with the models that are wrapped"
            yield Draft(rule, use.node, Role.BLOCKS, message=message, reason=reason)


def _answer(call: ast.Call | None) -> str:
    passed = [keyword.arg for keyword in call.keywords if keyword.arg in ARGUMENTS] if call else []
    told = "; ".join(f"for `{name}`, {ARGUMENTS[name]}" for name in passed if name)
    return f"{_WRAPS} ({told})" if told else f"{_WRAPS}: {_BLOCKS_FIRST}"
