"""Processes that PyTorch/XLA starts: one for each device, which torchrun starts from now on."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant
from tpuport.analysis.module import Module, dotted
from tpuport.analysis.xla import LAUNCHES, only_takes
from tpuport.draft import Context, Draft, Role
from tpuport.model import InsertAfter, InsertBefore, Replace, Rule, Span
from tpuport.source.ipython import CELL

INIT = """\
# torchrun starts one process for each device
DIST.init_process_group(DIST.get_default_backend_for_device({device}))
"""
BLOCKS = (ast.If, ast.With, ast.Try)


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every launch of processes."""
    module = context.module
    for use in context.xla.of(*LAUNCHES):
        call = module.call_of(use.node)
        if call is None:
            yield Draft(rule, use.node, Role.BLOCKS, reason="it is passed on without being called")
        elif reason := _why_it_stays(context, call):
            yield Draft(rule, call, Role.BLOCKS, reason=reason)
        else:
            yield _draft(context, rule, call)


def _why_it_stays(context: Context, call: ast.Call) -> str:
    module = context.module
    if CELL in module.source:
        return "a notebook runs in one process: call the function there, or start it from a script with torchrun"
    function, arguments = argument(call, 0, "fn"), argument(call, 1, "args")
    known = ("fn", "args", "nprocs", "join", "daemon", "start_method", "debug_single_process")
    if function is None or not dotted(function) or not only_takes(call, 3, *known):
        return "which function it starts, or with what, is not written out"
    if isinstance(arguments, ast.Tuple | ast.List) and any(isinstance(a, ast.Starred) for a in arguments.elts):
        return "which function it starts, or with what, is not written out"
    method = argument(call, None, "start_method")
    if method is not None and not is_constant(method, "spawn") and not _seeds(module):
        return "forked processes begin with the same random numbers, and torchrun's do not: seed them alike first"
    if len(context.xla.launches) > 1:
        return "processes are started in several places, and torchrun starts them once"
    if not module.is_bare(call) or not _is_last(module, module.statement(call)):
        return "what follows it runs once, and under torchrun would run in every process"
    return ""


def _seeds(module: Module) -> bool:
    return any(module.callee(call) == "torch.manual_seed" for call in module.of_type(ast.Call))


def _is_last(module: Module, statement: ast.stmt) -> bool:
    """Whether nothing follows in the function or module that holds the statement."""
    while True:
        parent = module.parents[statement]
        body = next(
            block
            for name in ("body", "orelse", "finalbody")
            if isinstance(block := getattr(parent, name, None), list) and statement in block
        )
        if body[-1] is not statement:
            return False
        if isinstance(parent, ast.Module | ast.FunctionDef):
            return True
        if not isinstance(parent, BLOCKS):
            return False
        statement = parent


def _draft(context: Context, rule: Rule, call: ast.Call) -> Draft:
    module = context.module
    function, arguments = argument(call, 0, "fn"), argument(call, 1, "args")
    assert function is not None
    holes: list[Span] = [module.span(function)]
    passed = ""
    if isinstance(arguments, ast.Tuple | ast.List):
        holes += [module.span(value) for value in arguments.elts]
        passed = "".join(f", {{{number}}}" for number in range(1, len(holes)))
    elif arguments is not None:
        holes.append(module.span(arguments))
        passed = ", *{1}"
    dist = context.xla.distributed
    edits = (
        InsertBefore(module.span(module.statement(call)), INIT.replace("DIST", dist)),
        Replace(module.span(call), f"{{0}}({dist}.get_rank(){passed})", tuple(holes)),
        InsertAfter(module.span(module.statement(call)), f"{dist}.destroy_process_group()"),
    )
    return Draft(rule, call, Role.MOVES, edits)
