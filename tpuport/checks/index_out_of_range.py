"""Indices beyond the end, which fail elsewhere: a TPU takes the last element for them."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument
from tpuport.analysis.module import Module, dotted
from tpuport.analysis.tensors import indices, integer, size
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every index tensor that is written out and reaches beyond a size that is written out too."""
    module = context.module
    if not module.calls_of("torch.tensor"):
        return
    for node in module.of_type(ast.Subscript):
        if isinstance(node.slice, ast.Call | ast.Name) and isinstance(node.ctx, ast.Load):
            yield from _beyond(context, rule, node.slice, size(module, node.value), negative=True)
    for call in module.calls_of("torch.index_select"):
        if len(call.args) == 3:
            dimension = integer(call.args[1])
            known = size(module, call.args[0], dimension) if dimension is not None else None
            yield from _beyond(context, rule, call.args[2], known)
    for call in module.calls_of("torch.nn.functional.embedding"):
        if len(call.args) > 1:
            yield from _beyond(context, rule, call.args[0], size(module, call.args[1]))
    for call in module.calls_of("torch.nn.functional.one_hot"):
        classes = integer(argument(call, 1, "num_classes"))
        if call.args and classes is not None and classes > 0:
            yield from _beyond(context, rule, call.args[0], classes)
    if not module.calls_of("torch.nn.Embedding"):
        return
    tables = _tables(module)
    for call in module.of_type(ast.Call):
        if len(call.args) == 1 and not module.callee(call):
            yield from _beyond(context, rule, call.args[0], _rows(module, call.func, tables))


Tables = dict[tuple[ast.AST | None, str], list[ast.expr]]
"""By class and attribute, everything that the class assigns to the attribute of `self`."""


def _tables(module: Module) -> Tables:
    found: Tables = {}
    for node in module.of_type(ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Attribute) and dotted(target).startswith("self."):
                found.setdefault((_class(module, node), target.attr), []).append(node.value)
    return found


def _class(module: Module, node: ast.AST) -> ast.AST | None:
    return next((parent for _, parent in module.ancestors(node) if isinstance(parent, ast.ClassDef)), None)


def _rows(module: Module, function: ast.expr, tables: Tables) -> int | None:
    """How many rows an embedding that is called has, where its one assignment says so."""
    made: ast.expr | None = None
    if isinstance(function, ast.Name):
        made = module.only_value(function)
    elif isinstance(function, ast.Attribute) and dotted(function) == f"self.{function.attr}":
        values = tables.get((_class(module, function), function.attr), [])
        made = values[0] if len(values) == 1 else None
    if not isinstance(made, ast.Call) or module.callee(made) != "torch.nn.Embedding":
        return None
    return integer(argument(made, 0, "num_embeddings"))


def _beyond(
    context: Context, rule: Rule, index: ast.expr, known: int | None, *, negative: bool = False
) -> Iterator[Draft]:
    """A draft where one of the indices is none of `known` elements; `negative` ones may count from the end."""
    if known is None:
        return
    wrong = [number for number in indices(context.module, index) if not (-known if negative else 0) <= number < known]
    if wrong:
        message = f"{rule.message} ({wrong[-1]}, of {known})"
        yield Draft(rule, index, Role.NEUTRAL, message=message)
