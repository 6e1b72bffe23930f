"""`torch.distributed.reduce` to one rank, which the process group of a TPU does not have."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant, is_unpacked
from tpuport.analysis.module import Module
from tpuport.draft import Context, Draft, Role
from tpuport.mapping import CUDA_THERE
from tpuport.model import GuardStatement, Rule, Severity

NAME = "torch.distributed.reduce"
AS_BEFORE = f"{CUDA_THERE} or not torch.accelerator.is_available()"
"""Where the reduction goes to one rank: CUDA has that, and so does the CPU."""

KEPT = (("op", 2), ("group", 3))
"""What `all_reduce` takes too, with its place among the arguments of `reduce`."""


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every use; a call that is a statement of its own gets an `all_reduce` beside it."""
    module = context.module
    for use in module.uses_of({NAME}):
        call = module.call_of(use.node)
        statement = module.statement(use.node)
        around = module.parents[statement]
        if isinstance(around, ast.If) and statement in around.body and _asks(module, around):
            reason = "other accelerators reduce to all ranks beside it"
            yield Draft(rule, use.node, Role.NEUTRAL, reason=reason, severity=Severity.INFO)
        elif call is not None and module.is_bare(call) and (other := _to_all(module, call)):
            edit = GuardStatement(module.span(statement), AS_BEFORE, other)
            yield Draft(rule, use.node, Role.MOVES, (edit,))
        else:
            yield Draft(rule, use.node, Role.BLOCKS)


def _asks(module: Module, branch: ast.If) -> bool:
    """Whether a branch is the one that the rewrite makes, however torch is imported."""
    return ast.dump(branch.test) == ast.dump(ast.parse(AS_BEFORE, mode="eval").body) or (
        "accelerator.is_available()" in module.text(branch.test) and "cuda.is_available()" in module.text(branch.test)
    )


def _to_all(module: Module, call: ast.Call) -> str:
    """The same reduction to all ranks; empty where an argument has no counterpart that is certain."""
    tensor = argument(call, 0, "tensor")
    waits = argument(call, 4, "async_op")
    if tensor is None or is_unpacked(call) or not isinstance(call.func, ast.Attribute):
        return ""
    if (waits is not None and not is_constant(waits, False)) or "cuda" in module.text(call).lower():
        return ""
    kept = [(name, argument(call, place, name)) for name, place in KEPT]
    given = [module.text(tensor), *(f"{name}={module.text(value)}" for name, value in kept if value is not None)]
    return f"{module.text(call.func.value)}.all_reduce({', '.join(given)})"
