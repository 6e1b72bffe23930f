"""`xm.master_print`: the first process prints."""

from collections.abc import Iterator

from tpuport.analysis.xla import PRINT, only_takes
from tpuport.draft import Context, Draft, Role
from tpuport.model import GuardStatement, RemoveStatement, Replace, Rule


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every such print."""
    module = context.module
    for use in context.xla.of(PRINT):
        call = module.call_of(use.node)
        if call is not None and context.xla.shows_metrics(call):
            yield Draft(rule, use.node, Role.MOVES, (RemoveStatement(module.span(module.statement(call))),))
        elif call is None or not module.is_bare(call):
            yield Draft(rule, use.node, Role.BLOCKS, reason="it is more than a statement of its own")
        elif not only_takes(call, len(call.args), "flush") or "print" in module.bound_names:
            yield Draft(rule, call, Role.BLOCKS, reason="where it prints to is not followed")
        else:
            statement = module.span(module.statement(call))
            guard = GuardStatement(statement, context.xla.is_first(call, local=False))
            yield Draft(rule, call, Role.MOVES, (Replace(module.span(use.node), "print"), guard))
