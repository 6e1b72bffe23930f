"""Sharding by annotation, SPMD of PyTorch/XLA, with what DTensor has for each part of it."""

from collections.abc import Iterator

from tpuport.analysis.xla import RUNTIME
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule

_MODULES = ("torch_xla.distributed.spmd", "torch_xla.experimental.xla_sharding")
_MESH = "`init_device_mesh(device.type, mesh_shape, mesh_dim_names=axis_names)`, one process for each device"
_DISTRIBUTE = (
    "`distribute_tensor(t, mesh, placements)`, a placement for each dimension of the mesh: `Shard(d)` where its name "
    "stands at dimension `d` of the spec, else `Replicate()`; parameters by `parallelize_module` or `fully_shard`"
)
_GOES = "leave it out: torch_tpu runs what is written, and torch.compile fuses it"
ANSWERS = {
    "Mesh": _MESH,
    "HybridMesh": "`init_device_mesh` with the slices as its first dimension",
    "get_1d_mesh": "`init_device_mesh(device.type, (world_size,))`",
    "set_global_mesh": "pass the mesh on to what shards",
    "get_global_mesh": "pass the mesh on to what shards",
    "mark_sharding": _DISTRIBUTE,
    "mark_sharding_with_gradients": _DISTRIBUTE,
    "annotate_custom_sharding": _DISTRIBUTE,
    "clear_sharding": "`dtensor.full_tensor()`",
    "ShardingSpec": "each process loads its part of a batch, by a `DistributedSampler`",
    "ShardingType": "`Shard`, `Replicate` and `Partial` of `torch.distributed.tensor`",
    "XLAShardedTensor": "`torch.distributed.tensor.DTensor`",
    "enable_manual_sharding": "`local_map` of torch.distributed.tensor.experimental, or `dtensor.to_local()`",
    "disable_manual_sharding": "`local_map` of torch.distributed.tensor.experimental, or `DTensor.from_local()`",
    "apply_backward_optimization_barrier": _GOES,
    "xla_patched_nn_linear_forward": _GOES,
    "wrap_if_sharded": "nothing: what comes from DTensors are DTensors",
}
OTHERS = {
    f"{RUNTIME}.use_spmd": "leave it out, and start one process for each device by torchrun",
    f"{RUNTIME}.is_spmd": "it is false from then on: keep that branch",
    "torch_xla.distributed.fsdp.utils.apply_xla_patch_to_nn_linear": _GOES,
    "torch_xla.experimental.spmd_fully_sharded_data_parallel.SpmdFullyShardedDataParallel": (
        "`fully_shard(model, mesh=mesh)` after its blocks; `shard_output` goes"
    ),
}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every name that shards, with what takes its place."""
    for use in context.xla.uses:
        module, _, name = use.name.rpartition(".")
        answer = OTHERS.get(use.name) or (ANSWERS.get(name, "") if module in _MODULES else "")
        if answer or use.name in _MODULES or module in _MODULES:
            node = context.module.call_of(use.node) or use.node
            message = rule.message.replace("{name}", use.name)
            yield Draft(rule, node, Role.BLOCKS, message=message, reason=answer)
