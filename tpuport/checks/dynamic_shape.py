"""Operators whose result's shape depends on values: a TPU compiles anew for each shape."""

import ast
from collections.abc import Iterator

from tpuport.analysis.steps import imports_torch, in_forward, training_loop
from tpuport.analysis.tensors import is_mask
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule

FUNCTIONS = frozenset(
    ("torch.nonzero", "torch.argwhere", "torch.masked_select", "torch.unique", "torch.unique_consecutive")
)
METHODS = ("nonzero", "argwhere", "masked_select", "unique_consecutive")
"""Names that only tensors have as methods, in code that runs on the accelerator (arrays of numpy have one too)."""


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every such operator, or selection by a mask, in the forward of a module or in a training step."""
    module = context.module
    if not imports_torch(module):
        return
    for call in module.of_type(ast.Call):
        name = module.callee(call)
        if name == "torch.where" and len(call.args) == 1 and not call.keywords:
            found = "torch.where(condition)"
        elif name in FUNCTIONS:
            found = name
        elif not name and isinstance(call.func, ast.Attribute) and call.func.attr in METHODS:
            found = f"Tensor.{call.func.attr}"
        else:
            continue
        if in_forward(module, call) or (name and training_loop(module, call)):
            yield Draft(rule, call, Role.NEUTRAL, message=rule.message.replace("a result", f"`{found}`"))
    for node in module.of_type(ast.Subscript):
        if isinstance(node.ctx, ast.Load) and is_mask(module, node.slice, node.value) and in_forward(module, node):
            yield Draft(rule, node, Role.NEUTRAL, message=rule.message.replace("a result", "a selection by a mask"))
