"""Double precision: a TPU has no units for it."""

import ast
from collections.abc import Iterator

from tpuport.analysis.steps import in_forward
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule

TYPES = frozenset(("torch.float64", "torch.double", "torch.complex128", "torch.cdouble"))


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every double type that torch is given, and for `.double()` in the forward of a module."""
    module = context.module
    for use in module.uses_of(TYPES):
        if _is_given(context, use.node):
            yield Draft(rule, use.node, Role.NEUTRAL, message=_message(rule, use.name))
    for call in module.calls_by_method.get("double", []):
        if not call.args and not call.keywords and not module.callee(call) and in_forward(module, call):
            yield Draft(rule, call, Role.NEUTRAL, message=_message(rule, ".double()"))


def _message(rule: Rule, name: str) -> str:
    return rule.message.replace("double precision", f"`{name}`")


def _is_given(context: Context, node: ast.expr) -> bool:
    """Whether the type goes straight into a call of torch or of a tensor's `to`, and so is not only compared with."""
    module = context.module
    parent = module.parents[node]
    if isinstance(parent, ast.keyword):
        parent = module.parents[parent] if parent.arg == "dtype" else parent
    if not isinstance(parent, ast.Call) or parent.func is node:
        return False
    method = parent.func.attr if isinstance(parent.func, ast.Attribute) else ""
    return module.callee(parent).startswith("torch.") or method == "to"
