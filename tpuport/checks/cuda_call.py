"""`x.cuda(...)` becomes `x.to(device, ...)`."""

import ast
import re
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant, is_unpacked
from tpuport.analysis.devices import cuda_device, default_device_kind, outer, zero_is_current
from tpuport.analysis.guards import blocks, conditions
from tpuport.analysis.module import Module, dotted, once
from tpuport.analysis.own_cuda import has_own_cuda
from tpuport.analysis.scopes import Kind
from tpuport.draft import Context, Draft, Role
from tpuport.mapping import CUDA_THERE
from tpuport.model import DropArgument, Edit, InsertArgument, Replace, Rule, SetArgument, SetAttribute, Severity

RANK = re.compile(r"(^|_)(rank|local_rank|device_id|gpu_id)$", re.IGNORECASE)
"""Names that hold a process or device number and are never None where a device is chosen by them."""

STORAGE = re.compile(r"(^|[._])storage$", re.IGNORECASE)
"""What holds or returns a storage, whose `to` takes the device by name only."""

NUMBERS = {"int", "range", "enumerate", "len", "torch.cuda.current_device", "torch.distributed.get_rank"}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every method call named `cuda` on something that may be a tensor or a module."""
    module = context.module
    for call in module.calls_by_method.get("cuda", []):
        assert isinstance(call.func, ast.Attribute)
        if _is_storage(module, call.func.value):
            continue
        owner = _owner(module, call)
        if owner is not None and not has_own_cuda(owner):
            reason = "the method does what `.to(device)` does for the same object, which its callers now use"
            yield Draft(rule, call, Role.NEUTRAL, severity=Severity.INFO, reason=reason)
        elif _is_import(module, call.func.value):
            reason = "the receiver is imported: whether it is a tensor or a module is not known"
            yield Draft(rule, call, Role.BLOCKS, reason=reason)
        else:
            yield _draft(context, rule, call, call.func)


def _is_import(module: Module, receiver: ast.expr) -> bool:
    """Whether the receiver is known only by its import."""
    while isinstance(receiver, ast.Attribute):
        receiver = receiver.value
    found = module.lookup(receiver) if isinstance(receiver, ast.Name) else None
    return found is not None and all(binding.kind is Kind.IMPORT for binding in found[1])


def _draft(context: Context, rule: Rule, call: ast.Call, func: ast.Attribute) -> Draft:
    reason = _not_a_tensor(context, call, func)
    if reason:
        return Draft(rule, call, Role.BLOCKS, reason=reason)
    if STORAGE.search(dotted(func.value) or dotted(getattr(func.value, "func", func.value))):
        reason = "a storage moves by `untyped_storage().to(device=...)`, and its tensor by `.to(device)`"
        return Draft(rule, call, Role.BLOCKS, reason=reason)
    if is_unpacked(call):
        return Draft(rule, call, Role.BLOCKS, reason="its arguments are unpacked from a variable")
    edits: list[Edit] = [SetAttribute(context.module.span(func), "to")]
    span = context.module.span(call)
    device = argument(call, 0, "device")
    if device is None or is_constant(device, None):
        if device is not None:
            edits.append(DropArgument(span, context.module.span(device)))
        edits.append(InsertArgument(span, "{device}"))
    elif not is_constant(device, 0) or zero_is_current(context.module, context.project):
        edits.extend(_device_edits(context, device))
    if len(call.args) > 1:
        second = context.module.span(call.args[1])
        edits += [DropArgument(span, second), SetArgument(span, "non_blocking", "{0}", (second,))]
    return Draft(rule, call, Role.MOVES, tuple(edits))


def _not_a_tensor(context: Context, call: ast.Call, func: ast.Attribute) -> str:
    """Why the receiver may be something with a `cuda` method of its own; empty for tensors and modules."""
    module = context.module
    receiver = func.value
    if isinstance(receiver, ast.Call) and module.text(receiver.func) == "super":
        return "it calls the `cuda` that a class inherits, whose callers have to move with it"
    if _owner(module, call) is not None:
        return "it stands in a method named `cuda`, whose callers have to move with it"
    owners = {*context.own_cuda, *_own_classes(module)}
    if owners and not _from_torch(module, receiver):
        classes = ", ".join(sorted(owners))
        return f"the receiver may be one of this project's own classes with a `cuda` method ({classes})"
    return ""


@once
def _own_classes(module: Module) -> set[str]:
    """Classes of the module that define a method named `cuda`."""
    return {node.name for node in module.of_type(ast.ClassDef) if has_own_cuda(node)}


def _owner(module: Module, call: ast.Call) -> ast.ClassDef | None:
    """The class in whose `cuda` method a call stands."""
    function = module.function(call)
    owner = module.parents[function] if function is not None and function.name == "cuda" else None
    return owner if isinstance(owner, ast.ClassDef) else None


def _is_storage(module: Module, receiver: ast.expr) -> bool:
    """Whether it stands in a `map_location` function, whose rule moves the function as a whole."""
    for _, parent in module.ancestors(receiver):
        if isinstance(parent, ast.Lambda):
            function = outer(module, parent)
            around = module.parents[function]
            if isinstance(around, ast.keyword) and around.arg == "map_location":
                return True
            return isinstance(around, ast.Call) and module.callee(around) == "torch.load"
    return False


TENSOR_METHODS = re.compile(
    r"^(un)?squeeze$|^view(_as)?$|^reshape$|^(float|half|long|int|double|bool|byte|bfloat16)$|^type$|^t$|^transpose$|^permute$"
    r"|^expand(_as)?$|^repeat$|^clone$|^detach$|^contiguous$|^flatten$|^unfold$|^mean$|^sum$|^abs$|^exp$|^log$|^to$|^cpu$"
)
"""Methods that tensors have and return tensors from, and models do not; `to` and `cpu` keep what their receiver is."""


def _from_torch(module: Module, receiver: ast.expr) -> bool:
    """Whether the receiver certainly comes out of torch: made by it, or by methods and operators on what it made."""
    match receiver:
        case ast.Name():
            value = module.only_value(receiver)
            return value is not None and not isinstance(value, ast.Name) and _from_torch(module, value)
        case ast.Call(func=ast.Attribute(value=inner, attr=method)):
            known = module.callee(receiver).startswith("torch.") or bool(TENSOR_METHODS.match(method))
            return known if method not in ("to", "cpu") else _from_torch(module, inner)
        case ast.Call():
            return module.callee(receiver).startswith("torch.")
        case ast.Subscript(value=inner):
            return _from_torch(module, inner)
        case ast.BinOp(left=left, right=right):
            return _from_torch(module, left) or _from_torch(module, right)
    return False


def _device_edits(context: Context, device: ast.expr) -> Iterator[Edit]:
    module = context.module
    span = module.span(device)
    if is_constant(device, 0):
        yield Replace(span, "{device}")
    elif tensor := _whose_device(device):
        yield Replace(span, "{0}.device", (module.span(tensor),))
    elif cuda_device(module, device) is None and _may_be_none(context, device):
        yield Replace(span, "{device} if {0} is None else {0}", (span,))


def _whose_device(number: ast.expr) -> ast.expr | None:
    """The tensor whose device a number is asked of: `x` for `x.get_device()`."""
    match number:
        case ast.Call(func=ast.Attribute(value=tensor, attr="get_device"), args=[], keywords=[]):
            return tensor
    return None


def _may_be_none(context: Context, device: ast.expr) -> bool:
    module = context.module
    if isinstance(device, ast.Constant | ast.BinOp | ast.Subscript | ast.JoinedStr | ast.IfExp):
        return False
    if isinstance(device, ast.Call):
        return False
    text = dotted(device)
    if not text or RANK.search(text):
        return not text
    if isinstance(device, ast.Name) and _is_number_or_device(module, device):
        return False
    if any(_needs_a_number(module, statement, text) for statement in _run_before(module, device)):
        return False
    return not any(_says_not_none(condition.test, condition.holds, text) for condition in conditions(module, device))


def _run_before(module: Module, node: ast.AST) -> Iterator[ast.stmt]:
    """Statements of the same function that have run where `node` does: those above it in the blocks around it."""
    for child, parent in module.ancestors(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            return
        for block in blocks(parent):
            if child in block:
                yield from block[: block.index(child)]


TAKES_A_NUMBER = {"torch.cuda.set_device", "torch.device"}
"""Functions that raise where they are given None."""


def _needs_a_number(module: Module, statement: ast.stmt, text: str) -> bool:
    """Whether a statement fails if the variable `text` is None: it computes with it, or makes it the current device."""
    match statement:
        case ast.AugAssign(value=value):
            return dotted(value) == text
        case ast.If(test=test, body=[only], orelse=[]) if module.text(test) == CUDA_THERE:
            return _needs_a_number(module, only, text)
        case ast.Expr(value=ast.Call(args=[first, *_]) as call):
            return module.callee(call) in TAKES_A_NUMBER and dotted(first) == text
        case ast.Assign(value=value):
            return any(
                isinstance(part, ast.BinOp)
                and text in (dotted(part.left), dotted(part.right))
                and not isinstance(part.op, ast.Mod)
                for part in ast.walk(value)
            )
    return False


def _is_number_or_device(module: Module, name: ast.Name) -> bool:
    found = module.lookup(name)
    if found is None:
        return False
    for binding in found[1]:
        if binding.kind is Kind.OTHER and isinstance(binding.node, ast.For | ast.AsyncFor | ast.comprehension):
            continue
        value = binding.value
        if binding.kind is Kind.PARAMETER and _is_rank(module, binding.node):
            continue
        if binding.kind is not Kind.ASSIGN or value is None:
            return False
        if isinstance(value, ast.Name) and any(
            _says_not_none(condition.test, condition.holds, value.id) for condition in conditions(module, value)
        ):
            continue
        known = isinstance(value, ast.Call) and (module.callee(value) or dotted(value.func)) in NUMBERS | {
            "torch.device"
        }
        literal = isinstance(value, ast.Constant) and isinstance(value.value, int | str)
        if not (known or literal or cuda_device(module, value) or default_device_kind(module, value)):
            return False
    return True


SPAWNS = {"torch.multiprocessing.spawn", "torch.multiprocessing.start_processes"}


def _is_rank(module: Module, parameter: ast.AST) -> bool:
    """Whether it is the first parameter of a function that this file only spawns, which then is the process' number."""
    function = module.parents.get(module.parents.get(parameter, parameter))
    if not isinstance(parameter, ast.arg) or not isinstance(function, ast.FunctionDef):
        return False
    names = [node for node in module.of_type(ast.Name) if node.id == function.name and isinstance(node.ctx, ast.Load)]
    return function.args.args[:1] == [parameter] and bool(names) and all(_is_spawned(module, name) for name in names)


def _is_spawned(module: Module, name: ast.Name) -> bool:
    parent = module.parents[name]
    call = module.parents[parent] if isinstance(parent, ast.keyword) else parent
    return isinstance(call, ast.Call) and module.callee(call) in SPAWNS and argument(call, 0, "fn") is name


def _says_not_none(test: ast.expr, holds: bool, text: str) -> bool:
    if dotted(test) == text:
        return holds
    match test:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if dotted(left) == text:
            if is_constant(right, None):
                return isinstance(op, ast.IsNot | ast.NotEq) is holds and isinstance(
                    op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq
                )
            return holds and isinstance(op, ast.Gt | ast.GtE | ast.Lt | ast.LtE)
    return False
