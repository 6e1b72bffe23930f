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
    for call in module.calls_of("torch.where", *FUNCTIONS):
        found = module.callee(call)
        if found == "torch.where":
            if len(call.args) != 1 or call.keywords:
                continue
            found = "torch.where(condition)"
        if in_forward(module, call) or training_loop(module, call):
            yield Draft(rule, call, Role.NEUTRAL, message=rule.message.replace("a result", f"`{found}`"))
    for method in METHODS:
        for call in module.calls_by_method.get(method, []):
            if not module.callee(call) and in_forward(module, call):
                message = rule.message.replace("a result", f"`Tensor.{method}`")
                yield Draft(rule, call, Role.NEUTRAL, message=message)
    for node in module.of_type(ast.Subscript):
        if isinstance(node.ctx, ast.Load) and is_mask(module, node.slice, node.value) and in_forward(module, node):
            yield Draft(rule, node, Role.NEUTRAL, message=rule.message.replace("a result", "a selection by a mask"))
