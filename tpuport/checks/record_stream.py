"""`tensor.record_stream(stream)`: memory that CUDA streams share, which no other accelerator has to be told of."""

import ast
from collections.abc import Iterator

from tpuport.draft import Context, Draft, Role
from tpuport.mapping import statement_guard
from tpuport.model import Rule


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every call; as a statement it can be left to CUDA."""
    for call in context.module.calls_by_method.get("record_stream", []):
        assert isinstance(call.func, ast.Attribute)
        if isinstance(call.func.value, ast.Name) and call.func.value.id in ("self", "cls"):
            continue  # a method of the project's own, whatever it is for
        guard = statement_guard(context, call)
        if guard:
            yield Draft(rule, call, Role.CUDA_ONLY, own_guard=guard)
        else:
            reason = "as a statement of its own it could be left to CUDA"
            yield Draft(rule, call, Role.BLOCKS, reason=reason)
