"""Parameters shared between modules, which a move to a TPU parts."""

import ast
from collections.abc import Iterator

from tpuport.analysis.module import dotted
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule

SWAP = "torch.__future__.set_swap_module_params_on_conversion"


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every `a.weight = b.weight`, unless the file keeps parameters whole when modules move."""
    module = context.module
    if any(use.name == SWAP for use in module.uses):
        return
    for node in module.of_type(ast.Assign):
        target, value = node.targets[0], node.value
        if dotted(target).endswith(".weight") and dotted(value).endswith(".weight") and dotted(value).count(".") > 1:
            yield Draft(rule, node, Role.NEUTRAL, reason="tie again after the move, or swap parameters (see the rule)")
