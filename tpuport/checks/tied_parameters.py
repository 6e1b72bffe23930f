"""Parameters shared between modules, which a move to a TPU parts."""

import ast
from collections.abc import Iterable, Iterator

from tpuport.analysis.module import dotted
from tpuport.draft import Context, Draft, Role
from tpuport.mapping import OTHER_THERE
from tpuport.model import InsertBefore, Rule, Severity

SWAP = "torch.__future__.set_swap_module_params_on_conversion"


def keep_parameters(context: Context, rule: Rule, nodes: Iterable[ast.expr | ast.stmt], why: str) -> Iterator[Draft]:
    """A draft for each of `nodes`, which need parameters to stay the same objects in a move.

    Above the first one goes the statement that makes them so, unless the file has it; CUDA, where they do, is left
    as it is.
    """
    module = context.module
    if any(use.name == SWAP for use in module.uses):
        return
    keep = f"""if {OTHER_THERE}:
    {SWAP}(True)  # {why}
"""
    first = True
    for node in nodes:
        edits = (InsertBefore(module.span(module.statement(node)), keep),) if first else ()
        reason = "" if first else "it is settled with the first one of the file"
        severity = None if first else Severity.INFO
        yield Draft(rule, node, Role.NEUTRAL, edits, reason=reason, severity=severity)
        first = False


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every `a.weight = b.weight`, unless the file keeps parameters whole when modules move."""
    module = context.module
    if not any(use.name.startswith("torch") for use in module.uses):
        return
    assignments = module.of_type(ast.Assign)
    tied = (node for node in assignments if _is_parameter(node.targets[0]) and _is_parameter(node.value))
    yield from keep_parameters(context, rule, tied, "a move keeps tied parameters tied")


def _is_parameter(node: ast.expr) -> bool:
    """Whether an expression is the weight of a part of something: `self.head.weight`, not `self.weight`."""
    text = dotted(node)
    return text.endswith(".weight") and text.count(".") > 1
