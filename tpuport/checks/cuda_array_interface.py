"""`t.__cuda_array_interface__` hands device memory to CUDA libraries."""

import ast
from collections.abc import Iterator

from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule

NAME = "__cuda_array_interface__"


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every place that reads it; asking whether it is there is harmless."""
    for node in context.module.attributes_by_name.get(NAME, []):
        if isinstance(node.ctx, ast.Load):
            yield Draft(rule, node, Role.BLOCKS, reason="exchange through DLPack, or copy to the CPU first")
