"""Classes with a `cuda` method of their own."""

import ast


def has_own_cuda(node: ast.ClassDef) -> bool:
    """Whether a class has a `cuda` method that does more than `Module.to` does by itself for the same object."""
    own = [m for m in node.body if isinstance(m, ast.FunctionDef | ast.AsyncFunctionDef) and m.name == "cuda"]
    return bool(own) and not (node.bases and all(map(_only_passes_on, own)))


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
