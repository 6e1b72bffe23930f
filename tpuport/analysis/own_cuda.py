"""Classes with a `cuda` method of their own."""

import ast

PLAIN_BASES = {"object", "ABC", "Generic", "Protocol", "dict", "list", "tuple", "UserDict", "OrderedDict", "NamedTuple"}
"""Bases that have no `to`: what inherits from these alone has to be asked for by its own `cuda`."""


def has_own_cuda(node: ast.ClassDef) -> bool:
    """Whether a class has a `cuda` method that does more than `Module.to` does by itself for the same object."""
    own = [m for m in node.body if isinstance(m, ast.FunctionDef | ast.AsyncFunctionDef) and m.name == "cuda"]
    return bool(own) and not (any(map(_may_be_module, node.bases)) and all(map(_only_passes_on, own)))


def _may_be_module(base: ast.expr) -> bool:
    """Whether a base may be a module, or anything else that has a `to` of its own."""
    if isinstance(base, ast.Subscript):
        base = base.value
    return not (isinstance(base, ast.Name | ast.Attribute) and _last(base) in PLAIN_BASES)


def _last(name: ast.Name | ast.Attribute) -> str:
    return name.attr if isinstance(name, ast.Attribute) else name.id


def _only_passes_on(method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a `cuda` method only hands the call to its object's parts or to its base, as `Module.to` does."""
    for statement in method.body:
        match statement:
            case ast.Return(value=ast.Name(id="self")) | ast.Expr(value=ast.Constant()):
                continue
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="cuda"))):
                continue
            case ast.Assign(targets=[ast.Attribute()], value=ast.Call(func=ast.Attribute(attr="cuda"))):
                continue
            case ast.Return(value=ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="cuda"))):
                continue
        return False
    return True
