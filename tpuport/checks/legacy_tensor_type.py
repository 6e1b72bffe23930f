"""`torch.cuda.FloatTensor` and its family, as constructors, as arguments of `.type` and in strings."""

import ast
import re
from collections.abc import Iterator
from textwrap import indent

from tpuport.analysis.guards import conditions, cuda_tensor_types
from tpuport.analysis.module import Module, dotted
from tpuport.checks.tensor_type_alias import CURRENT, DTYPES, aliases, constructor
from tpuport.draft import Context, Draft, Role
from tpuport.mapping import CUDA_THERE
from tpuport.model import Edit, GuardStatement, InsertArgument, Replace, Rule, SetArgument, SetAttribute

SET_TYPE = "torch.set_default_tensor_type"
TYPE_NAME = re.compile(r"torch\.cuda\.(\w+Tensor)$")


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every use of a CUDA tensor type, but in tests of what a tensor is: these are settled with guards."""
    module = context.module
    kept = {alias.cuda for alias in aliases(module)}
    for use in module.uses:
        found = TYPE_NAME.match(use.name) if use.name.startswith("torch.cuda.") else None
        if found and found[1] in DTYPES and use.node not in kept and not _is_asked_for(module, use.node):
            yield _type_draft(context, rule, use.node, DTYPES[found[1]])
    for node in module.texts:
        found = TYPE_NAME.match(str(node.value))
        if found and found[1] in DTYPES:
            yield _conversion(context, rule, node, DTYPES[found[1]]) or _text_draft(
                context, rule, node, DTYPES[found[1]]
            )


def _is_asked_for(module: Module, node: ast.expr) -> bool:
    """Whether a type is one of those that `isinstance` asks for, and all of them are CUDA's."""
    parent = module.parents[node]
    return bool(cuda_tensor_types(module.parents[parent] if isinstance(parent, ast.Tuple) else parent))


def _default_type(context: Context, rule: Rule, node: ast.expr, dtype: str) -> Draft | None:
    """`torch.set_default_tensor_type(...)`: CUDA keeps it, another accelerator becomes the default device."""
    module = context.module
    call = module.parents[node]
    if not isinstance(call, ast.Call) or module.callee(call) != SET_TYPE:
        return None
    statement = module.parents[call]
    if not isinstance(statement, ast.Expr):
        return Draft(rule, node, Role.BLOCKS, reason="it is called within an expression")
    if _is_settled(context, statement):
        return Draft(rule, node, Role.CUDA_ONLY)
    if back := next((other for other in module.of_type(ast.Call) if _takes_back(context, other, call)), None):
        reason = f"line {module.span(back).line} takes the type back, and no call does that for a default device alone"
        return Draft(rule, node, Role.BLOCKS, reason=reason)
    other = f"torch.set_default_device({CURRENT})"
    if dtype != "torch.float32":
        half = "  # as autocast does there" if dtype == "torch.float16" else ""
        wanted = "torch.bfloat16" if half else dtype
        other = f"torch.set_default_dtype({wanted}){half}\n{other}"
    if not context.guards.has_accelerator(node):
        other = "if torch.accelerator.is_available():\n" + indent(other, "    ")
    edit = GuardStatement(module.span(statement), CUDA_THERE, other)
    return Draft(rule, node, Role.MOVES, (edit,))


def _is_settled(context: Context, statement: ast.Expr) -> bool:
    """Whether the statement is the arm for CUDA of a test whose other arm sets the default device."""
    test = context.module.parents[statement]
    return (
        isinstance(test, ast.If)
        and statement in test.body
        and context.guards.tests_availability(test.test)
        and any("set_default_device" in context.module.text(other) for other in test.orelse)
    )


def _takes_back(context: Context, other: ast.Call, call: ast.Call) -> bool:
    """Whether `other` sets a tensor type of the CPU, other than under a condition against that of `call`."""
    module = context.module
    if module.callee(other) != SET_TYPE or not other.args:
        return False
    name = other.args[0].value if isinstance(other.args[0], ast.Constant) else module.qualified(other.args[0])
    if TYPE_NAME.match(str(name)):
        return False
    branches = {test: child in test.body for child, test in module.ancestors(call) if isinstance(test, ast.If)}
    for child, test in module.ancestors(other):
        if isinstance(test, ast.If) and test in branches and (child in test.body) is not branches[test]:
            return False
    known = {(module.text(condition.test), condition.holds) for condition in conditions(module, call)}
    return not any((module.text(c.test), not c.holds) in known for c in conditions(module, other))


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
