"""`torch.cuda.FloatTensor` and its family, as constructors, as arguments of `.type` and in strings."""

import ast
import re
from collections.abc import Iterator

from tpuport.draft import Context, Draft, Role
from tpuport.model import Edit, InsertArgument, Replace, Rule, SetArgument, SetAttribute

DTYPES = {
    "FloatTensor": "torch.float32",
    "DoubleTensor": "torch.float64",
    "HalfTensor": "torch.float16",
    "BFloat16Tensor": "torch.bfloat16",
    "LongTensor": "torch.int64",
    "IntTensor": "torch.int32",
    "ShortTensor": "torch.int16",
    "CharTensor": "torch.int8",
    "ByteTensor": "torch.uint8",
    "BoolTensor": "torch.bool",
}
TYPE_NAME = re.compile(r"torch\.cuda\.(\w+Tensor)$")


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every use of a CUDA tensor type."""
    module = context.module
    for use in module.uses:
        found = TYPE_NAME.match(use.name)
        if found and found[1] in DTYPES:
            yield _type_draft(context, rule, use.node, DTYPES[found[1]])
    for node in module.of_type(ast.Constant):
        found = TYPE_NAME.match(node.value) if isinstance(node.value, str) else None
        if found and found[1] in DTYPES:
            yield _conversion(context, rule, node, DTYPES[found[1]]) or _text_draft(rule, node)


def _text_draft(rule: Rule, node: ast.Constant) -> Draft:
    return Draft(rule, node, Role.BLOCKS, reason="compare `t.dtype` and `t.device.type` in place of the type's name")


def _type_draft(context: Context, rule: Rule, node: ast.expr, dtype: str) -> Draft:
    call = context.module.call_of(node)
    if call is None:
        conversion = _conversion(context, rule, node, dtype)
        reason = "it is kept as a type; make it a `dtype` and a `device`, and construct with both"
        return conversion or Draft(rule, node, Role.BLOCKS, reason=reason)
    if call.keywords or not call.args:
        return Draft(rule, node, Role.BLOCKS, reason="only sizes and lists have a certain counterpart")
    span = context.module.span(call)
    by_keyword: tuple[Edit, ...] = (SetArgument(span, "dtype", dtype), SetArgument(span, "device", "{device}"))
    if all(isinstance(argument, ast.Constant) and isinstance(argument.value, int) for argument in call.args):
        return Draft(rule, node, Role.MOVES, (Replace(context.module.span(node), "torch.empty"), *by_keyword))
    if len(call.args) == 1 and isinstance(call.args[0], ast.List | ast.ListComp):
        return Draft(rule, node, Role.MOVES, (Replace(context.module.span(node), "torch.tensor"), *by_keyword))
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
