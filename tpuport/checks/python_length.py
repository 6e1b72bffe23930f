"""Tensors as long as a Python list: a TPU compiles anew for each length."""

import ast
from collections.abc import Iterator

from tpuport.analysis.module import Module
from tpuport.analysis.scopes import Binding, Kind
from tpuport.analysis.steps import in_forward
from tpuport.analysis.tensors import FACTORIES, value
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule

MAKERS = FACTORIES | {"torch.full", "torch.arange"}
METHODS = ("new_zeros", "new_ones", "new_full", "new_empty")
SEQUENCES = {"list", "List", "Sequence"}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every tensor that the forward of a module makes as long as a list is."""
    module = context.module
    made = module.calls_of(*MAKERS)
    for method in METHODS:
        made += [call for call in module.calls_by_method.get(method, []) if not module.callee(call)]
    for call in made:
        if any(_has_length(module, size) for size in call.args) and in_forward(module, call):
            yield Draft(rule, call, Role.NEUTRAL)


def _has_length(module: Module, node: ast.expr) -> bool:
    return any(
        _is_length(module, value(module, part))
        for part in ast.walk(node)
        if isinstance(part, ast.Call | ast.Name) and isinstance(getattr(part, "ctx", None), ast.Load | None)
    )


def _is_length(module: Module, node: ast.expr) -> bool:
    """Whether a value is the length of a list, or the greatest of several lengths or their sum."""
    match node:
        case ast.Call(func=ast.Name(id="len") as function, args=[ast.Name() as of], keywords=[]):
            found = module.lookup(of)
            return module.lookup(function) is None and found is not None and _are_lists(found[1])
        case ast.Call(func=ast.Name(id="max" | "sum"), args=[of], keywords=[]):
            return _are_lengths(of)
    return False


def _are_lengths(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="map"), args=[ast.Name(id="len"), _]):
            return True
        case ast.GeneratorExp(elt=element) | ast.ListComp(elt=element):
            return isinstance(element, ast.Call) and isinstance(element.func, ast.Name) and element.func.id == "len"
    return False


def _are_lists(bindings: list[Binding]) -> bool:
    return all(_is_list(binding) for binding in bindings)


def _is_list(binding: Binding) -> bool:
    if binding.kind is Kind.PARAMETER:
        return isinstance(binding.node, ast.arg) and _names_list(binding.node.annotation)
    match binding.value:
        case ast.ListComp() | ast.List(elts=[]):
            return True
        case ast.Call(func=ast.Name(id="list" | "sorted")):
            return True
    return False


def _names_list(annotation: ast.expr | None) -> bool:
    """`list[X]`, `List[X]`, `Sequence[X]`, of a typing module or by themselves."""
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    name = annotation.attr if isinstance(annotation, ast.Attribute) else getattr(annotation, "id", "")
    return name in SEQUENCES
