"""Out of memory told by the text of an error, which CUDA's allocator words."""

import ast
from collections.abc import Iterator

from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule

TEXTS = ("CUDA out of memory", "CUDA error")


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every test of an error's text for CUDA's words."""
    for node in context.module.of_type(ast.Compare):
        for part in (node.left, *node.comparators):
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.startswith(TEXTS):
                yield Draft(rule, part, Role.NEUTRAL, reason="catch torch.OutOfMemoryError, which every device raises")
