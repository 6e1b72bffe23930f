"""Expressions that are sure to be tensors, by what makes them, with the sizes and values that are written out."""

import ast

from tpuport.analysis.calls import argument, is_unpacked
from tpuport.analysis.module import Module, dotted

FACTORIES = frozenset(f"torch.{name}" for name in ("zeros", "ones", "empty", "rand", "randn"))
"""Functions whose positional arguments are the sizes."""

_RESULTS = FACTORIES | frozenset(
    f"torch.{name}"
    for name in (
        "tensor", "arange", "full", "linspace", "randint", "randperm", "zeros_like", "ones_like", "empty_like",
        "full_like", "rand_like", "randn_like", "abs", "norm", "sigmoid", "softmax", "argmax", "cdist", "sum", "mean",
    )
)  # fmt: skip

_TESTS = frozenset(
    f"torch.{name}"
    for name in (
        "isnan", "isinf", "isfinite", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not",
        "logical_xor", "isin", "isclose",
    )
)  # fmt: skip
"""Functions that give a boolean for each element."""

_ORDERS = (ast.Gt, ast.GtE, ast.Lt, ast.LtE, ast.Eq, ast.NotEq)


def value(module: Module, node: ast.expr) -> ast.expr:
    """What a name stands for, where one assignment says so; else the node itself."""
    return (module.only_value(node) or node) if isinstance(node, ast.Name) else node


def is_tensor(module: Module, node: ast.expr) -> bool:
    """Whether one of torch's own functions makes the value."""
    made = value(module, node)
    return isinstance(made, ast.Call) and module.callee(made) in _RESULTS


def is_mask(module: Module, node: ast.expr, masked: ast.expr) -> bool:
    """Whether `node` compares each element of a tensor; one that `masked` itself is compared in is one of its own."""
    match value(module, node):
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return is_mask(module, operand, masked)
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr(), left=left, right=right):
            return is_mask(module, left, masked) or is_mask(module, right, masked)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if isinstance(op, _ORDERS):
            name = dotted(masked)
            own = bool(name) and name in (dotted(left), dotted(right))
            return own or is_tensor(module, left) or is_tensor(module, right)
        case ast.Call() as call:
            return module.callee(call) in _TESTS
    return False


def integer(node: ast.AST | None) -> int | None:
    """The integer that a literal is, also a negative one."""
    match node:
        case ast.Constant(value=int(number)) if type(number) is int:
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))) if type(number) is int:
            return -number
    return None


def size(module: Module, node: ast.expr, dimension: int = 0) -> int | None:
    """The size of a tensor that is made with sizes written out; None where it is not known."""
    made = value(module, node)
    if not isinstance(made, ast.Call) or is_unpacked(made):
        return None
    name = module.callee(made)
    if name == "torch.arange" and len(made.args) == 1:
        return integer(made.args[0]) if dimension == 0 else None
    if name not in FACTORIES or argument(made, None, "size") is not None:
        return None
    sizes = made.args
    if len(sizes) == 1 and isinstance(sizes[0], ast.Tuple | ast.List):
        sizes = sizes[0].elts
    return integer(sizes[dimension]) if 0 <= dimension < len(sizes) else None


def indices(module: Module, node: ast.expr) -> list[int]:
    """The integers of an index tensor that is written out; empty where they are not all known."""
    made = value(module, node)
    if not isinstance(made, ast.Call) or module.callee(made) != "torch.tensor" or not made.args:
        return []
    pending, found = [made.args[0]], []
    while pending:
        part = pending.pop()
        if isinstance(part, ast.List | ast.Tuple):
            pending += part.elts
        elif (number := integer(part)) is None:
            return []
        else:
            found.append(number)
    return found
