"""`torch.cuda.is_bf16_supported()` is false on a TPU, which supports bfloat16."""

import ast
from collections.abc import Iterator

from tpuport.draft import Context, Draft, Role
from tpuport.model import Replace, Rule

NAME = "torch.cuda.is_bf16_supported"


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every call; other accelerators count as supporting it."""
    module = context.module
    for use in module.uses_of((NAME,)):
        call = module.call_of(use.node)
        if call is None:
            yield Draft(rule, use.node, Role.BLOCKS, reason="it is passed on without being called")
        elif _asks_cuda_only(context, call):
            yield Draft(rule, use.node, Role.CUDA_ONLY)
        elif _is_one_of_several(context, call):
            reason = "it is one of several questions about CUDA in the same condition, which have no counterpart"
            yield Draft(rule, use.node, Role.BLOCKS, reason=reason)
        else:
            span = module.span(call)
            template = "not torch.cuda.is_available() or {0}"
            if not context.guards.has_accelerator(call):
                template = "{0} if torch.cuda.is_available() else torch.accelerator.is_available()"
            yield Draft(rule, use.node, Role.MOVES, (Replace(span, template, (span,)),))


def _is_one_of_several(context: Context, call: ast.Call) -> bool:
    parent = context.module.parents[call]
    if not isinstance(parent, ast.BoolOp):
        return False
    others = {
        use.name
        for use in context.module.uses
        if use.name.startswith(("torch.cuda.", "torch.version.", "torch.distributed.is_nccl"))
        and any(use.node in ast.walk(value) for value in parent.values)
    }
    return bool(others - {NAME, "torch.cuda.is_available"})


def _asks_cuda_only(context: Context, call: ast.Call) -> bool:
    """Whether the call stands where other accelerators have an answer of their own already."""
    parent = context.module.parents[call]
    if isinstance(parent, ast.IfExp) and parent.body is call and context.guards.tests_availability(parent.test):
        return not isinstance(parent.orelse, ast.Constant)
    if isinstance(parent, ast.BoolOp) and isinstance(parent.op, ast.Or):
        first = parent.values[0]
        return isinstance(first, ast.UnaryOp) and context.guards.tests_availability(first.operand)
    return False
