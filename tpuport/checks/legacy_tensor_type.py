"""`torch.cuda.FloatTensor` and its family, as constructors, as arguments of `.type` and in strings."""

import ast
import re
from collections.abc import Iterator

from tpuport.analysis.module import dotted
from tpuport.checks.tensor_type_alias import DTYPES, aliases, constructor
from tpuport.draft import Context, Draft, Role
from tpuport.model import Edit, InsertArgument, Replace, Rule, SetArgument, SetAttribute

TYPE_NAME = re.compile(r"torch\.cuda\.(\w+Tensor)$")


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every use of a CUDA tensor type."""
    module = context.module
    kept = {alias.cuda for alias in aliases(module)}
    for use in module.uses:
        found = TYPE_NAME.match(use.name)
        if found and found[1] in DTYPES and use.node not in kept:
            yield _type_draft(context, rule, use.node, DTYPES[found[1]])
    for node in module.of_type(ast.Constant):
        found = TYPE_NAME.match(node.value) if isinstance(node.value, str) else None
        if found and found[1] in DTYPES:
            yield _conversion(context, rule, node, DTYPES[found[1]]) or _text_draft(
                context, rule, node, DTYPES[found[1]]
            )


def _default_type(context: Context, rule: Rule, node: ast.expr, dtype: str) -> Draft | None:
    """`torch.set_default_tensor_type(...)`: its successors reach more code than it did."""
    call = context.module.parents[node]
    if not isinstance(call, ast.Call) or context.module.callee(call) != "torch.set_default_tensor_type":
        return None
    reason = f"`torch.set_default_dtype({dtype})` and `torch.set_default_device(device)` say it for every device, "
    reason += "but reach code that the default tensor type did not"
    return Draft(rule, node, Role.BLOCKS, reason=reason)


def _text_draft(context: Context, rule: Rule, node: ast.Constant, dtype: str) -> Draft:
    comparison = _comparison(context, rule, node, dtype)
    if comparison is not None:
        return comparison
    reason = "compare `t.dtype` and `t.device.type` in place of the type's name"
    return _default_type(context, rule, node, dtype) or Draft(rule, node, Role.BLOCKS, reason=reason)


def _comparison(context: Context, rule: Rule, node: ast.Constant, dtype: str) -> Draft | None:
    """`t.type() == "torch.cuda.HalfTensor"`: the same question about dtype and device."""
    match context.module.parents[node]:
        case (
            ast.Compare(
                left=ast.Call(func=ast.Attribute(value=tensor, attr="type"), args=[], keywords=[]), ops=[ast.Eq()]
            ) as test
        ) if dotted(tensor):
            template = f'{{0}}.dtype == {dtype} and {{0}}.device.type != "cpu"'
            edit = Replace(context.module.span(test), template, (context.module.span(tensor),))
            return Draft(rule, test, Role.MOVES, (edit,))
    return None


def _type_draft(context: Context, rule: Rule, node: ast.expr, dtype: str) -> Draft:
    call = context.module.call_of(node)
    if call is None:
        conversion = _conversion(context, rule, node, dtype) or _default_type(context, rule, node, dtype)
        reason = "it is kept as a type; make it a `dtype` and a `device`, and construct with both"
        return conversion or Draft(rule, node, Role.BLOCKS, reason=reason)
    span = context.module.span(call)
    by_keyword: tuple[Edit, ...] = (SetArgument(span, "dtype", dtype), SetArgument(span, "device", "{device}"))
    if function := constructor(context.module, call):
        return Draft(rule, node, Role.MOVES, (Replace(context.module.span(node), function), *by_keyword))
    return Draft(rule, node, Role.BLOCKS, reason="whether the argument is a size or the data is not known")


def _conversion(context: Context, rule: Rule, node: ast.expr, dtype: str) -> Draft | None:
    """`x.type(torch.cuda.FloatTensor)`, also with the type's name as a string."""
    call = context.module.parents[node]
    if not isinstance(call, ast.Call) or call.args != [node] or call.keywords:
        return None
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "type":
        return None
    module = context.module
    edits = (
        SetAttribute(module.span(call.func), "to"),
        Replace(module.span(node), dtype),
        InsertArgument(module.span(call), "{device}"),
    )
    return Draft(rule, node, Role.MOVES, edits)
