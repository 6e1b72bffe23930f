"""Arguments of calls, by position or by name."""

import ast


def argument(call: ast.Call, position: int | None, name: str) -> ast.expr | None:
    """The argument passed for a parameter, positionally or by keyword; None when it is not passed."""
    if position is not None and position < len(call.args):
        return call.args[position]
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def is_unpacked(call: ast.Call) -> bool:
    """Whether `*args` or `**kwargs` hide what is passed."""
    return any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)


def is_constant(node: ast.AST | None, *values: object) -> bool:
    """Whether `node` is a literal, of exactly the type and value of one of `values`."""
    return isinstance(node, ast.Constant) and any(
        type(node.value) is type(value) and node.value == value for value in values
    )
