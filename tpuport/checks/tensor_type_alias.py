"""A CUDA tensor type kept in a variable: the variable becomes a device, and its uses name their dtype."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tpuport.analysis.devices import loads
from tpuport.analysis.guards import conditions
from tpuport.analysis.module import Module, dotted, once
from tpuport.analysis.scopes import Kind
from tpuport.analysis.tensors import integer
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
"""The dtype of each legacy tensor type."""

CURRENT = "torch.accelerator.current_accelerator()"


@dataclass(frozen=True, slots=True)
class Alias:
    """`target = torch.cuda.XTensor`, or the same chosen against the CPU's type by a condition (`cpu` is that arm)."""

    target: ast.Name
    cuda: ast.expr
    cpu: ast.expr | None
    kind: str


@once
def aliases(module: Module) -> list[Alias]:
    """The CUDA tensor types that the module keeps in a plain variable."""
    return list(_aliases(module)) if any(use.name.startswith("torch.cuda.") for use in module.uses) else []


def _aliases(module: Module) -> Iterator[Alias]:
    for node in module.of_type(ast.Assign):
        match node:
            case ast.Assign(targets=[ast.Name() as target], value=ast.IfExp(body=body, orelse=orelse)):
                kind = cuda_type(module, body)
                if kind and module.qualified(orelse) in (f"torch.{kind}", "torch.Tensor"):
                    yield Alias(target, body, orelse, kind)
            case ast.Assign(targets=[ast.Name() as target], value=ast.Attribute() as value):
                kind = cuda_type(module, value)
                if kind:
                    yield Alias(target, value, None, kind)


def cuda_type(module: Module, node: ast.expr) -> str:
    """`FloatTensor` for `torch.cuda.FloatTensor`, and so on; empty for anything else."""
    prefix, _, name = module.qualified(node).rpartition(".")
    return name if prefix == "torch.cuda" and name in DTYPES else ""


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every such variable; all of its uses move with it, or none."""
    for alias in aliases(context.module):
        edits = [*_definition(context, alias)]
        reason = _why_it_stays(context, alias)
        for use in loads(context.module, alias.target):
            found = _use(context.module, alias, use)
            if not found:
                line = context.module.span(use).line
                reason = reason or f"line {line} uses the type in a way that has no certain counterpart"
            edits.extend(found)
        if reason:
            yield Draft(rule, alias.cuda, Role.BLOCKS, reason=reason)
        else:
            yield Draft(rule, alias.cuda, Role.MOVES, tuple(edits))


def _name(alias: Alias) -> str:
    """`FloatTensor` → `float_tensor_device`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", alias.target.id).lower() + "_device"


def _why_it_stays(context: Context, alias: Alias) -> str:
    module = context.module
    scope, bindings = module.scopes[alias.target].lookup(alias.target.id) or (module.scope, [])
    if len(bindings) != 1 or bindings[0].kind is not Kind.ASSIGN:
        return "the variable is set in several places"
    if _name(alias) in module.bound_names:
        return f"the name {_name(alias)} is taken"
    if scope.is_module and not is_script(module):
        return "other modules may import the variable"
    return ""


def is_script(module: Module) -> bool:
    """Whether the module is run rather than imported: it reads the command line, or says what it does when run."""
    for statement in module.tree.body:
        if isinstance(statement, ast.If) and "__main__" in module.text(statement.test):
            return True
        parsed = isinstance(statement, ast.Assign | ast.Expr) and isinstance(statement.value, ast.Call)
        if parsed and module.text(statement.value.func).endswith(".parse_args"):  # type: ignore[attr-defined]
            return True
    return False


def _definition(context: Context, alias: Alias) -> Iterator[Edit]:
    span = context.module.span
    yield Replace(span(alias.target), _name(alias))
    if alias.cpu is None:
        yield Replace(span(alias.cuda), "{new device}")
    else:
        yield Replace(span(alias.cuda), CURRENT if context.guards.has_accelerator(alias.cuda) else "{device}")
        yield Replace(span(alias.cpu), 'torch.device("cpu")')


def _use(module: Module, alias: Alias, use: ast.Name) -> list[Edit]:
    parent = module.parents[use]
    if not isinstance(parent, ast.Call):
        return []
    device, dtype, span = _name(alias), DTYPES[alias.kind], module.span(parent)
    if parent.func is use:
        function = constructor(module, parent)
        if not function:
            return []
        by_keyword = [SetArgument(span, "dtype", dtype), SetArgument(span, "device", device)]
        return [Replace(module.span(use), function), *by_keyword]
    converts = parent.args == [use] and not parent.keywords and isinstance(parent.func, ast.Attribute)
    if converts and parent.func.attr == "type":  # type: ignore[attr-defined]
        method = SetAttribute(module.span(parent.func), "to")
        return [method, Replace(module.span(use), dtype), InsertArgument(span, device)]
    return []


def constructor(module: Module, call: ast.Call) -> str:
    """What a legacy constructor's call means: `torch.empty` for sizes, `torch.tensor` for data, empty if unknown."""
    if call.keywords or not call.args:
        return ""
    first = call.args[0]
    parent = module.parents[call]
    if len(call.args) > 1 or isinstance(first, ast.Starred):
        return "torch.empty"
    kinds = {_argument_kind(module, value) for value in _values(module, first)}
    if isinstance(parent, ast.Attribute) and parent.attr in INITIALISERS and "torch.tensor" not in kinds:
        return "torch.empty"
    if kinds == {""}:
        data, number = _is_operand(module, call), _is_compared_as_number(module, first)
        return "" if data == number else "torch.tensor" if data else "torch.empty"
    return kinds.pop() if len(kinds) == 1 else ""


INITIALISERS = {"fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_"}
"""What fills a tensor in place: unless its data is written out, such a tensor is made by its size."""


ARITHMETIC = frozenset(
    f"torch.{name}" for name in ("add", "sub", "mul", "div", "mm", "bmm", "matmul", "dot", "cat", "stack")
)


def _is_operand(module: Module, call: ast.Call) -> bool:
    """Whether the tensor is computed with at once: then it holds data, as one made by its size holds nothing yet."""
    parent = module.parents[call]
    if isinstance(parent, ast.Call):
        return call in parent.args and module.callee(parent) in ARITHMETIC
    return isinstance(parent, ast.BinOp | ast.Compare) or (isinstance(parent, ast.AugAssign) and parent.value is call)


def _is_compared_as_number(module: Module, node: ast.expr) -> bool:
    """Whether a test around `node` orders the same name against a number."""
    text = dotted(node)
    return bool(text) and any(
        isinstance(condition.test, ast.Compare)
        and dotted(condition.test.left) == text
        and isinstance(condition.test.ops[0], ast.Gt | ast.GtE | ast.Lt | ast.LtE)
        and integer(condition.test.comparators[0]) is not None
        for condition in conditions(module, node)
    )


def _values(module: Module, node: ast.expr) -> list[ast.expr]:
    """The expressions that a name or attribute may stand for, where all are written out; else the node itself."""
    if isinstance(node, ast.Attribute) and (text := dotted(node)):
        assigned = [a.value for a in module.of_type(ast.Assign) for t in a.targets if dotted(t) == text]
        return assigned or [node]
    found = module.lookup(node) if isinstance(node, ast.Name) else None
    around = {up for _, up in module.ancestors(node)}
    values = [binding.value for binding in found[1] if binding.node not in around] if found else []
    return [value for value in values if value is not None] if values and None not in values else [node]


def _argument_kind(module: Module, node: ast.expr) -> str:
    match node:
        case ast.Constant(value=int()):
            return "torch.empty"
        case ast.List() | ast.ListComp() | ast.Tuple():
            return "torch.tensor"
        case ast.Call(func=ast.Attribute(attr="size" | "item" | "numel"), args=[]) | ast.Attribute(attr="shape"):
            return "torch.empty"
        case ast.Call(func=ast.Name(id="len" | "int"), args=[_]):
            return "torch.empty"
        case ast.Call() if module.callee(node).startswith("numpy."):
            return "torch.tensor"
        case ast.BinOp(left=left, right=right):
            data = "torch.tensor" in (_argument_kind(module, left), _argument_kind(module, right))
            return "torch.tensor" if data else ""
    return ""
