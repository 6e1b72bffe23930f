"""`sdpa_kernel` that allows only attention kernels which CUDA alone has."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule

NAME = "torch.nn.attention.sdpa_kernel"
BACKENDS = "torch.nn.attention.SDPBackend."
CUDA_ONLY = {"EFFICIENT_ATTENTION", "CUDNN_ATTENTION"}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every call whose backends are written out and leave a TPU none."""
    module = context.module
    for call in module.calls_of(NAME):
        value = argument(call, 0, "backends")
        listed = value.elts if isinstance(value, ast.List | ast.Tuple | ast.Set) else [value] if value else []
        names = {module.qualified(element) for element in listed}
        if names and names <= {BACKENDS + name for name in CUDA_ONLY}:
            yield Draft(rule, call, Role.BLOCKS, reason="add `SDPBackend.MATH` to the list, or keep the block for CUDA")
