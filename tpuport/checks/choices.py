"""Values that stay as they are on CUDA and on the CPU, and are another on other accelerators."""

import ast
from collections.abc import Iterator

from tpuport.analysis.devices import outer, parameter_of
from tpuport.analysis.module import Module, dotted
from tpuport.checks.compile_mode import is_chosen_by_device
from tpuport.draft import Context, Draft, Role
from tpuport.model import Replace, Rule

KEPT_DEVICES = '("cuda", "cpu")'
"""The device types that keep what the code says."""

KEPT = f"{{device.type}} in {KEPT_DEVICES}"
OTHERS = f"{{device.type}} not in {KEPT_DEVICES}"


def arms(value: ast.expr) -> Iterator[ast.Constant]:
    """The literals that an expression may come to, without those that a test of the device chooses already."""
    match value:
        case ast.Constant():
            yield value
        case ast.IfExp(body=body, orelse=orelse):
            yield from arms(body)
            yield from arms(orelse)
        case ast.BoolOp(values=values):
            for one in values:
                yield from arms(one)


def kept(context: Context, rule: Rule, value: ast.expr, otherwise: str) -> Draft:
    """The value on CUDA and on the CPU, `otherwise` elsewhere; one that a test of the device chooses is right."""
    parent = context.module.parents[value]
    if isinstance(parent, ast.IfExp) and is_chosen_by_device(context, parent):
        return Draft(rule, value, Role.CUDA_ONLY)
    span = context.module.span(value)
    return Draft(rule, value, Role.MOVES, (Replace(span, f"{{0}} if {KEPT} else {otherwise}", (span,)),))


def kept_on_cuda(context: Context, rule: Rule, value: ast.expr, otherwise: str) -> Draft:
    """As `kept`, for a value that only CUDA takes."""
    parent = context.module.parents[value]
    if isinstance(parent, ast.IfExp) and context.guards.tests_availability(parent.test):
        return Draft(rule, value, Role.CUDA_ONLY)
    span = context.module.span(value)
    edit = Replace(span, f"{{0}} if torch.cuda.is_available() else {otherwise}", (span,))
    return Draft(rule, value, Role.MOVES, (edit,))


def receiver(module: Module, text: ast.Constant) -> str:
    """The name that a value is given: of a keyword, a parameter, a variable, an attribute, a key or an option."""
    value = outer(module, text)
    parent = module.parents[value]
    match parent:
        case ast.keyword(arg="default"):
            call = module.parents[parent]
            names = [str(a.value) for a in getattr(call, "args", ()) if isinstance(a, ast.Constant)]
            return names[0].replace("-", "_") if names else ""
        case ast.keyword(arg=str(name)):
            return name
        case ast.arguments():
            return parameter_of(parent, value)
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
            return _target(target)
        case ast.Dict(keys=keys, values=values) if value in values:
            key = keys[values.index(value)]
            return str(key.value) if isinstance(key, ast.Constant) else ""
    return ""


def _target(target: ast.expr) -> str:
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        return str(target.slice.value)
    return target.attr if isinstance(target, ast.Attribute) else dotted(target)
