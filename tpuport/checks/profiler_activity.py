"""`ProfilerActivity.CUDA`: without `activities` the profiler takes the CPU and whatever accelerator is there."""

import ast
from collections.abc import Iterator

from tpuport.draft import Context, Draft, Role
from tpuport.model import DropArgument, Replace, Rule

PROFILE = "torch.profiler.profile"
CPU, CUDA = "torch.profiler.ProfilerActivity.CPU", "torch.profiler.ProfilerActivity.CUDA"
SORT_KEYS = {
    f"{own}cuda_{what}": f"{own}device_{what}"
    for own in ("", "self_")
    for what in ("time_total", "memory_usage", "time")
}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every mention of the CUDA activity, and for the sort keys named after it."""
    module = context.module
    for use in module.uses_of((CUDA,)):
        yield _activity(context, rule, use.node)
    for node in module.texts:
        if node.value in SORT_KEYS and isinstance(module.parents[node], ast.keyword):
            edit = Replace(module.span(node), f'"{SORT_KEYS[str(node.value)]}"')
            yield Draft(rule, node, Role.MOVES, (edit,), message=f"the sort key {node.value!r} is CUDA's name for it")


def _activity(context: Context, rule: Rule, node: ast.expr) -> Draft:
    module = context.module
    names = module.parents[node]
    keyword = module.parents[names]
    if isinstance(names, ast.List | ast.Tuple) and isinstance(keyword, ast.keyword) and keyword.arg == "activities":
        call = module.parents[keyword]
        both = {module.qualified(element) for element in names.elts} == {CPU, CUDA}
        if both and isinstance(call, ast.Call) and module.callee(call) == PROFILE:
            return Draft(rule, node, Role.MOVES, (DropArgument(module.span(call), module.span(names)),))
    return Draft(rule, node, Role.BLOCKS, reason="which activities are wanted elsewhere has to be said by hand")
