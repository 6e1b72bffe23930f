"""A TPU that is written out: `"tpu"` raises where none is attached, and CUDA is then left out."""

import ast
import re
from collections.abc import Iterator

from tpuport.analysis.devices import Place, place
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule

TPU = re.compile(r"tpu(:\d+)?$")
INTERNAL = {
    "torch.tpu.is_available": "torch.accelerator.is_available",
    "torch.tpu.device_count": "torch.accelerator.device_count",
    "torch.tpu.current_device": "torch.accelerator.current_device_index",
    "torch.tpu.set_device": "torch.accelerator.set_device_index",
    "torch.tpu.device": "torch.accelerator.device_index",
    "torch.tpu.synchronize": "torch.accelerator.synchronize",
    "torch.tpu.current_stream": "torch.accelerator.current_stream",
    "torch.tpu.set_stream": "torch.accelerator.set_stream",
    "torch.tpu.initial_seed": "torch.initial_seed",
    "torch.tpu.get_rng_state": "torch.get_device_module().default_generators",
}
"""Names of `torch.tpu` that raise for users, with what stands for them."""


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every TPU literal that torch is given, and for the names of `torch.tpu` that raise."""
    module = context.module
    for node in module.texts:
        text = str(node.value)
        if text.startswith("tpu") and TPU.match(text) and _is_device(context, node):
            yield Draft(rule, node, Role.NEUTRAL, reason="take `torch.accelerator.current_accelerator()`")
    for use in module.uses_of(INTERNAL):
        message = f"{use.name} is internal to torch_tpu, and raises"
        yield Draft(rule, use.node, Role.NEUTRAL, message=message, reason=f"use `{INTERNAL[use.name]}`")


def _is_device(context: Context, node: ast.Constant) -> bool:
    module = context.module
    parent = module.parents[node]
    if isinstance(parent, ast.Call) and module.callee(parent) == "torch.device":
        return True
    return place(module, node) is Place.TORCH
