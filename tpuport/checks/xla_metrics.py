"""Counters and metrics of PyTorch/XLA."""

from collections.abc import Iterator

from tpuport.analysis.xla import METRICS
from tpuport.draft import Context, Draft, Role
from tpuport.model import RemoveStatement, Rule


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every use of the metrics; a line that only prints or clears them goes."""
    module = context.module
    for use in context.xla.uses:
        if not use.name.startswith(METRICS):
            continue
        statement = module.statement(use.node)
        line = getattr(statement, "value", None)
        if module.call_of(use.node) is not None and line is not None and context.xla.shows_metrics(line):
            yield Draft(rule, use.node, Role.MOVES, (RemoveStatement(module.span(statement)),))
        else:
            reason = "`tpuport profile` counts compilations and executions, and torch.profiler times them"
            yield Draft(rule, use.node, Role.BLOCKS, reason=reason)
