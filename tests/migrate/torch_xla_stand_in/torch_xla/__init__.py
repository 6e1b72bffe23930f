import sys
import types

import torch


class Loader:
    def __init__(self, loader, _devices):
        self.loader = loader

    def __iter__(self):
        return iter(self.loader)

    def per_device_loader(self, _device):
        return self.loader


def optimizer_step(optimizer):
    optimizer.step()


def nothing(*args, **kwargs):
    pass


def module(name, **names):
    made = types.ModuleType(name)
    made.__dict__.update(names)
    sys.modules[name] = made
    package, _, leaf = name.rpartition(".")
    setattr(sys.modules[package], leaf, made)


module("torch_xla.core")
module(
    "torch_xla.core.xla_model",
    xla_device=lambda: torch.device("cpu"),
    xrt_world_size=lambda: 1,
    get_ordinal=lambda: 0,
    master_print=print,
    rendezvous=nothing,
    set_rng_state=nothing,
    mark_step=nothing,
    optimizer_step=optimizer_step,
    add_step_closure=lambda closure, args: closure(*args),
    mesh_reduce=lambda _tag, data, reduce_fn: reduce_fn([data]),
    save=torch.save,
)
module("torch_xla.debug")
module("torch_xla.debug.metrics", metrics_report=lambda: "")
module("torch_xla.distributed")
module("torch_xla.distributed.parallel_loader", MpDeviceLoader=Loader, ParallelLoader=Loader)
module("torch_xla.distributed.xla_multiprocessing", spawn=lambda fn, args, **_: fn(0, *args))
