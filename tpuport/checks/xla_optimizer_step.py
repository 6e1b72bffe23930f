"""`xm.optimizer_step(optimizer)`: gradients are averaged over all processes, then the optimizer makes its step."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument
from tpuport.analysis.module import Module, dotted
from tpuport.analysis.xla import MODEL, only_takes
from tpuport.draft import Context, Draft, Role
from tpuport.model import Edit, InsertBefore, RemoveStatement, Replace, Rule

STEP = f"{MODEL}.optimizer_step"
REDUCE = f"{MODEL}.reduce_gradients"
AVERAGE = """\
for GROUP in OPTIMIZER.param_groups:
    for PARAMETER in GROUP["params"]:
        if PARAMETER.grad is not None:
            DIST.all_reduce(PARAMETER.grad)
            PARAMETER.grad /= DIST.get_world_size()
"""
NAMES = {
    "GROUP": ("group", "param_group", "optimizer_group"),
    "PARAMETER": ("parameter", "param", "optimizer_parameter"),
}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every optimizer step or reduction of gradients."""
    module = context.module
    for use in context.xla.of(STEP, REDUCE):
        call = module.call_of(use.node)
        if call is None:
            yield Draft(rule, use.node, Role.BLOCKS, reason="it is passed on without being called")
            continue
        optimizer = argument(call, 0, "optimizer")
        takes_barrier = 2 if use.name == STEP else 1
        if not only_takes(call, takes_barrier, "optimizer", "barrier", "pin_layout"):
            yield Draft(rule, call, Role.BLOCKS, reason="its arguments say more than which optimizer it is")
        elif optimizer is None or not dotted(optimizer):
            yield Draft(rule, call, Role.BLOCKS, reason="the optimizer has no name here")
        elif not module.is_bare(call):
            yield Draft(rule, call, Role.BLOCKS, reason="its value is used")
        else:
            yield Draft(rule, call, Role.MOVES, tuple(_edits(context, call, dotted(optimizer), use.name)))


def _edits(context: Context, call: ast.Call, optimizer: str, name: str) -> Iterator[Edit]:
    module = context.module
    statement = module.span(module.statement(call))
    if average := _average(context, call, optimizer):
        yield InsertBefore(statement, average)
    if name == REDUCE:
        yield RemoveStatement(statement)
    else:
        yield Replace(module.span(call), f"{optimizer}.step()")


def _average(context: Context, call: ast.Call, optimizer: str) -> str:
    """The reduction of the gradients; nothing where the module is a program of one process."""
    module, xla = context.module, context.xla
    if module.function(call) is None and not xla.is_distributed:
        return ""
    code = AVERAGE.replace("OPTIMIZER", optimizer).replace("DIST", xla.distributed)
    for name, choices in NAMES.items():
        code = code.replace(name, _free(module, choices))
    if xla.has_group(call):
        return code
    lines = "".join(f"    {line}" for line in code.splitlines(keepends=True))
    return f"if {xla.distributed}.is_initialized():\n{lines}"


def _free(module: Module, choices: tuple[str, ...]) -> str:
    return next((name for name in choices if name not in module.bound_names), choices[-1])
