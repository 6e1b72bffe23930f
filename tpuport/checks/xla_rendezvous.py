"""Places where processes wait for one another, or exchange Python values."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument
from tpuport.analysis.module import Module
from tpuport.analysis.xla import MODEL, is_xla, only_takes
from tpuport.draft import Context, Draft, Role
from tpuport.model import GuardStatement, InsertBefore, Replace, Rule

MEET = f"{MODEL}.rendezvous"
REDUCE = f"{MODEL}.mesh_reduce"
GATHER = """\
NAME = [None] * DIST.get_world_size()
DIST.all_gather_object(NAME, DATA)
"""
NAMES = ("gathered", "gathered_values", "tpuport_gathered")


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every such place."""
    module = context.module
    for use in context.xla.of(MEET, REDUCE):
        call = module.call_of(use.node)
        if call is None:
            yield Draft(rule, use.node, Role.BLOCKS, reason="it is passed on without being called")
        elif use.name == MEET:
            yield _meeting(context, rule, call)
        else:
            yield _reduction(context, rule, call)


def _meeting(context: Context, rule: Rule, call: ast.Call) -> Draft:
    module, dist = context.module, context.xla.distributed
    if not module.is_bare(call) or not only_takes(call, 1, "tag"):
        return Draft(rule, call, Role.BLOCKS, reason=f"it exchanges values: use `{dist}.all_gather_object`")
    edit = Replace(module.span(call), f"{dist}.barrier()")
    if context.xla.has_group(call):
        return Draft(rule, call, Role.MOVES, (edit,))
    guard = GuardStatement(module.span(module.statement(call)), f"{dist}.is_initialized()")
    return Draft(rule, call, Role.MOVES, (edit, guard))


def _reduction(context: Context, rule: Rule, call: ast.Call) -> Draft:
    module, dist = context.module, context.xla.distributed
    data, function = argument(call, 1, "data"), argument(call, 2, "reduce_fn")
    answer = f"gather with `{dist}.all_gather_object`, and reduce the list"
    if data is None or function is None or not only_takes(call, 3, "tag", "data", "reduce_fn"):
        return Draft(rule, call, Role.BLOCKS, reason=answer)
    statement = module.statement(call)
    whole = isinstance(statement, ast.Assign | ast.AnnAssign | ast.Return | ast.Expr) and statement.value is call
    plain = not any(is_xla(module.qualified(node)) for part in (data, function) for node in ast.walk(part))
    if not whole or not plain or not context.xla.has_group(call):
        return Draft(rule, call, Role.BLOCKS, reason=answer)
    name = next((name for name in NAMES if name not in module.bound_names), NAMES[-1])
    code = GATHER.replace("NAME", name).replace("DIST", dist).replace("DATA", _on_one_line(module, data))
    edit = Replace(module.span(call), f"{{0}}({name})", (module.span(function),))
    return Draft(rule, call, Role.MOVES, (InsertBefore(module.span(statement), code), edit))


def _on_one_line(module: Module, node: ast.expr) -> str:
    text = module.text(node)
    return text if "\n" not in text else ast.unparse(node)
