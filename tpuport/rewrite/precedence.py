"""Parentheses: when an expression needs them in the place that it is put into."""

import libcst as cst

ATOM = 10
_BINARY = 7
_LEVELS: tuple[tuple[tuple[type[cst.BaseExpression], ...], int], ...] = (
    ((cst.NamedExpr, cst.Yield, cst.Tuple, cst.StarredElement), -1),
    ((cst.Lambda,), 0),
    ((cst.IfExp,), 1),
    ((cst.Comparison,), 5),
    ((cst.BinaryOperation,), _BINARY),
    ((cst.Await,), 9),
)


def level(node: cst.BaseExpression) -> int:
    """How tightly an expression binds, as Python's grammar orders it; parenthesised ones are atoms."""
    if node.lpar:
        return ATOM
    if isinstance(node, cst.BooleanOperation):
        return 3 if isinstance(node.operator, cst.And) else 2
    if isinstance(node, cst.UnaryOperation):
        return 4 if isinstance(node.operator, cst.Not) else 8
    return next((number for kinds, number in _LEVELS if isinstance(node, kinds)), ATOM)


def required(parent: cst.CSTNode, child: cst.CSTNode) -> int:
    """How tightly an expression must bind to stand in `parent` where `child` stands."""
    match parent:
        case cst.Attribute() | cst.Subscript() if parent.value is child:
            return ATOM
        case cst.Call() if parent.func is child:
            return ATOM
        case cst.IfExp():
            return 2  # also for `else`: a chain of choices is read more easily with parentheses
        case cst.BooleanOperation():
            own = level(parent.with_changes(lpar=(), rpar=()))
            return own if parent.left is child else own + 1
        case cst.UnaryOperation():
            return 4 if isinstance(parent.operator, cst.Not) else 8
        case cst.CompIf() | cst.CompFor():
            return 2
        case cst.Comparison() | cst.ComparisonTarget():
            return 6
        case cst.BinaryOperation():
            return _BINARY + 1
        case cst.Await() | cst.Decorator():
            return 9
        case cst.StarredElement() | cst.StarredDictElement():
            return 6
    return -1


def fit(node: cst.BaseExpression, parent: cst.CSTNode, child: cst.CSTNode) -> cst.BaseExpression:
    """`node`, in parentheses if it needs them in place of `child` in `parent`."""
    if level(node) >= required(parent, child):
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
