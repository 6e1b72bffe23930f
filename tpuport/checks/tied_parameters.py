"""Parameters shared between modules, which a move to a TPU parts."""

import ast
from collections.abc import Iterator

from tpuport.analysis.module import dotted
from tpuport.draft import Context, Draft, Role
from tpuport.model import InsertBefore, Rule, Severity

SWAP = "torch.__future__.set_swap_module_params_on_conversion"


def keep_parameters(why: str) -> str:
    """The statement after which parameters stay the same objects in a move; CUDA, where they do, is left as it is."""
    return f"""if torch.accelerator.is_available() and not torch.cuda.is_available():
    {SWAP}(True)  # {why}
"""


KEEP_TIED = keep_parameters("a move keeps tied parameters tied")


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every `a.weight = b.weight`, unless the file keeps parameters whole when modules move."""
    module = context.module
    if any(use.name == SWAP for use in module.uses) or not any(use.name.startswith("torch") for use in module.uses):
        return
    first = True
    for node in module.of_type(ast.Assign):
        if _is_parameter(node.targets[0]) and _is_parameter(node.value):
            edits = (InsertBefore(module.span(node), KEEP_TIED),) if first else ()
            reason = "" if first else "it is settled with the first one of the file"
            severity = None if first else Severity.INFO
            yield Draft(rule, node, Role.NEUTRAL, edits, reason=reason, severity=severity)
            first = False


def _is_parameter(node: ast.expr) -> bool:
    """Whether an expression is the weight of a part of something: `self.head.weight`, not `self.weight`."""
    text = dotted(node)
    return text.endswith(".weight") and text.count(".") > 1
