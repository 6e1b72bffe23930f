"""The imaginary part of a conjugate: a TPU gives it with the wrong sign."""

import ast
from collections.abc import Iterator

from tpuport.analysis.module import Module
from tpuport.analysis.steps import imports_torch, in_forward
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for `x.conj().imag` and `x.mH.imag` of what is sure to be a tensor."""
    module = context.module
    if not imports_torch(module):
        return
    for node in module.of_type(ast.Attribute):
        if node.attr == "imag" and isinstance(node.ctx, ast.Load):
            receiver = _conjugated(node.value)
            if receiver is not None and _is_tensor(module, receiver):
                yield Draft(rule, node, Role.NEUTRAL)


def _conjugated(node: ast.expr) -> ast.expr | None:
    """What is conjugated without its values being computed anew."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="conj" | "adjoint"), args=[]):
            return value
        case ast.Attribute(value=value, attr="mH" | "H"):
            return value
    return None


def _is_tensor(module: Module, node: ast.expr) -> bool:
    if in_forward(module, node):
        return True
    value = module.only_value(node) if isinstance(node, ast.Name) else node
    return isinstance(value, ast.Call) and module.callee(value).startswith("torch.")
