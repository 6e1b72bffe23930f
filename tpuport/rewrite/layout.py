"""Lines that became too long, broken as formatters break them."""

import libcst as cst

OUTER = cst.ParenthesizedWhitespace(indent=True)


def _code(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


def broken(line: cst.SimpleStatementLine, indent: str, unit: str, width: int) -> cst.SimpleStatementLine:
    """`line`, broken if it does not fit: a conditional expression before `if` and `else`, a call between arguments.

    `indent` is the line's own, `unit` one step of it. Lines that already span several, or hold several statements,
    stay as they are, but for a call whose arguments share a line of their own.
    """
    inner = cst.ParenthesizedWhitespace(indent=True, last_line=cst.SimpleWhitespace(unit))
    statement = line.body[0]
    value = getattr(statement, "value", None)
    code = _code(cst.SimpleStatementLine(line.body)).rstrip()
    if len(line.body) != 1:
        return line
    if "\n" in code:
        room = width - _columns(indent + unit)
        if isinstance(value, cst.Call) and _share_too_long_a_line(value, room):
            return line.with_changes(body=[statement.with_changes(value=_one_a_line(value, inner, room))])
        return line
    if _columns(indent) + len(code) <= width:
        return line
    if isinstance(value, cst.IfExp) and not value.lpar:
        parentheses = {
            "lpar": [cst.LeftParen(whitespace_after=inner)],
            "rpar": [cst.RightParen(whitespace_before=OUTER)],
        }
        value = _at_keywords(value, inner).with_changes(**parentheses)
    elif isinstance(value, cst.Call) and value.args:
        called = _with_most_arguments(value)
        shorter = _between_arguments(called, inner, width - _columns(indent + unit))
        value = value.deep_replace(called, shorter) if called is not value else shorter
    else:
        return line
    return line.with_changes(body=[statement.with_changes(value=value)])


def broken_with(statement: cst.With, indent: str, unit: str, width: int) -> cst.With:
    """A `with` of one call, broken between the call's arguments if its first line does not fit."""
    call = statement.items[0].item
    header = _code(statement.with_changes(leading_lines=(), body=cst.SimpleStatementSuite([cst.Pass()])))
    header = header.rstrip().removesuffix("pass").rstrip()
    if len(statement.items) != 1 or not isinstance(call, cst.Call) or not call.args or "\n" in header:
        return statement
    if _columns(indent) + len(header) <= width:
        return statement
    inner = cst.ParenthesizedWhitespace(indent=True, last_line=cst.SimpleWhitespace(unit))
    item = statement.items[0].with_changes(item=_between_arguments(call, inner, width - _columns(indent + unit)))
    return statement.with_changes(items=[item])


def _columns(indent: str) -> int:
    return len(indent.expandtabs(4))


def _at_keywords(choice: cst.IfExp, inner: cst.ParenthesizedWhitespace) -> cst.IfExp:
    return choice.with_changes(whitespace_before_if=inner, whitespace_before_else=inner)


def _between_arguments(call: cst.Call, inner: cst.ParenthesizedWhitespace, room: int) -> cst.Call:
    """All arguments on one line of their own if there is room for them, else one a line."""
    last = call.args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    together = _code(call.with_changes(args=[*call.args[:-1], last])).removeprefix(_code(call.func))[1:-1]
    call = call.with_changes(whitespace_before_args=inner)
    if len(together) <= room:
        return call.with_changes(args=[*call.args[:-1], last.with_changes(whitespace_after_arg=OUTER)])
    return _one_a_line(call, inner, room)


def _one_a_line(call: cst.Call, inner: cst.ParenthesizedWhitespace, room: int) -> cst.Call:
    args = [_fitted(arg, inner, room) for arg in call.args]
    if len(args) == 1:
        closing = args[0].with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=OUTER)
        return call.with_changes(args=[closing])
    between = cst.Comma(whitespace_after=inner)
    nothing = cst.SimpleWhitespace("")
    closing = args[-1].with_changes(comma=cst.Comma(whitespace_after=OUTER), whitespace_after_arg=nothing)
    return call.with_changes(args=[*(arg.with_changes(comma=between) for arg in args[:-1]), closing])


def _share_too_long_a_line(call: cst.Call, room: int) -> bool:
    """Whether all arguments stand on one line, which holds nothing else and does not fit."""
    lines = _code(call).removeprefix(_code(call.func)).split("\n")
    alone = [lines[0].strip(), lines[-1].strip()] == ["(", ")"]
    return len(lines) == 3 and alone and len(call.args) > 1 and "#" not in lines[1] and len(lines[1].strip()) > room


def _with_most_arguments(call: cst.Call) -> cst.Call:
    """Of calls that are chained, `f(x, y).to(device)`, the one to break: the last with the most arguments."""
    calls, node = [call], call.func
    while isinstance(node, cst.Attribute) and isinstance(node.value, cst.Call):
        calls.append(node.value)
        node = node.value.func
    return max(calls, key=lambda call: len(call.args))


def _fitted(arg: cst.Arg, inner: cst.ParenthesizedWhitespace, room: int) -> cst.Arg:
    if isinstance(arg.value, cst.IfExp) and not arg.value.lpar and len(_code(arg)) > room:
        return arg.with_changes(value=_at_keywords(arg.value, inner))
    return arg
