"""Device values: which expressions name a CUDA device, and what kind of place they end up in."""

import ast
import re
from dataclasses import dataclass
from enum import Enum, auto

from tpuport.analysis.module import Module, dotted, once
from tpuport.model import Project

DEVICE_NAME = re.compile(r"(^|_)(devices?|dev|device_type|device_name|map_location)(_|\d*$)", re.IGNORECASE)
"""Names that say that they hold a device."""

DEVICE_KEYWORDS = {"device", "map_location", "device_type"}
TENSOR_FACTORIES = {"to", "new_zeros", "new_ones", "new_full", "new_empty", "new_tensor", "to_empty"}
TEXT_ONLY = {
    f"torch.distributed.{place}{name}"
    for place in ("", "device_mesh.", "tensor.", "_tensor.", "_tensor.device_mesh.")
    for name in ("init_device_mesh", "DeviceMesh")
}
"""Functions of torch that take the type of a device first, as a string."""

TAKES_DEVICE_FIRST = {
    f"torch.{module}.{name}"
    for module in ("cuda", "accelerator")
    for name in (
        "synchronize",
        "current_stream",
        "memory_allocated",
        "max_memory_allocated",
        "memory_reserved",
        "max_memory_reserved",
        "memory_stats",
        "reset_peak_memory_stats",
        "reset_accumulated_memory_stats",
        "mem_get_info",
        "get_memory_info",
        "get_device_name",
    )
}
"""Functions that have a counterpart on every accelerator and are told of a device first."""

AUTOCAST = {
    "torch.autocast",
    "torch.amp.autocast",
    "torch.amp.GradScaler",
    "torch.amp.custom_fwd",
    "torch.amp.custom_bwd",
    "torch.GradScaler",
}
"""Callables whose device type is settled by the rules for mixed precision."""

FORMAT = re.compile(r"cuda:\{[^{}]*\}")
"""A format string that makes a numbered device."""


class Index(Enum):
    """Which CUDA device an expression names."""

    CURRENT = auto()
    """`cuda`: whichever is current."""
    ZERO = auto()
    """`cuda:0`."""
    GIVEN = auto()
    """A number, or one computed while running."""


@dataclass(frozen=True, slots=True)
class CudaDevice:
    """An expression that names a CUDA device: a string, or a `torch.device`."""

    node: ast.expr
    index: Index
    is_text: bool


def _literal(text: str) -> Index | None:
    if text == "cuda":
        return Index.CURRENT
    if text == "cuda:0":
        return Index.ZERO
    return Index.GIVEN if re.fullmatch(r"cuda:\d+", text) else None


def _is_text(node: ast.AST, *values: str) -> bool:
    return isinstance(node, ast.Constant) and node.value in values


def cuda_device(module: Module, node: ast.AST) -> CudaDevice | None:
    """What CUDA device `node` names as a whole, or None."""
    match node:
        case ast.Constant(value=str(text)):
            index = _literal(text)
            return CudaDevice(node, index, True) if index else None
        case ast.JoinedStr(values=[ast.Constant(value=str(text))]):
            index = _literal(text)
            return CudaDevice(node, index, True) if index else None
        case ast.JoinedStr(values=[first, ast.FormattedValue()]) if _is_text(first, "cuda:"):
            return CudaDevice(node, Index.GIVEN, True)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")) if FORMAT.fullmatch(text):
            return CudaDevice(node, Index.GIVEN, True)
        case ast.BinOp(left=left, op=ast.Add()) if _is_text(left, "cuda:"):
            return CudaDevice(node, Index.GIVEN, True)
        case ast.BinOp(left=left, op=ast.Mod()) if _is_text(left, "cuda:%d", "cuda:%s", "cuda:%i"):
            return CudaDevice(node, Index.GIVEN, True)
        case ast.Call() if module.callee(node) == "torch.device":
            return _constructed(module, node)
    return None


def _constructed(module: Module, call: ast.Call) -> CudaDevice | None:
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    first = call.args[0] if call.args else keywords.get("type")
    second = call.args[1] if len(call.args) > 1 else keywords.get("index")
    inner = cuda_device(module, first) if first is not None else None
    if inner is None or not inner.is_text:
        return None
    if second is None:
        return CudaDevice(call, inner.index, False)
    zero = isinstance(second, ast.Constant) and second.value == 0
    return CudaDevice(call, Index.ZERO if zero else Index.GIVEN, False)


@once
def cuda_devices(module: Module) -> list[CudaDevice]:
    """Every outermost expression of the module that names a CUDA device."""
    if "cuda" not in module.source:
        return []
    candidates: list[ast.expr] = [
        *(node for node in module.texts if str(node.value).startswith("cuda")),
        *module.of_type(ast.JoinedStr),
        *module.calls_by_method.get("format", []),
        *module.of_type(ast.BinOp),
        *module.calls_of("torch.device"),
    ]
    found = {node: device for node in candidates if (device := cuda_device(module, node)) is not None}
    inside = {inner for node in found for inner in ast.walk(node) if inner is not node}
    return [found[node] for node in module.in_order(found.keys() - inside)]


class Place(Enum):
    """Where a device expression ends up."""

    TORCH = auto()
    """An argument that takes a string or a `torch.device`."""
    TEXT = auto()
    """A place that may look into the string: it must stay one."""
    NAMED = auto()
    """Assigned to a plain name that holds a device."""
    PRECISION = auto()
    """A device type that the rules for mixed precision settle."""
    COMPARED = auto()
    """An operand of a comparison."""
    UNKNOWN = auto()
    """Nothing shows that it is a device."""


def _looks_up(call: ast.Call) -> bool:
    """`table.get(key, default)`, `os.getenv(key, default)`."""
    return isinstance(call.func, ast.Attribute) and call.func.attr in ("get", "getenv", "pop")


def outer(module: Module, node: ast.expr) -> ast.expr:
    """The expression whose value is `node`'s: out of conditional expressions, `or`, and look-ups with a default."""
    while True:
        parent = module.parents.get(node)
        chosen = isinstance(parent, ast.IfExp) and node is not parent.test
        alternative = isinstance(parent, ast.BoolOp) and isinstance(parent.op, ast.Or)
        default = isinstance(parent, ast.Call) and _looks_up(parent) and parent.args[1:] == [node]
        if not isinstance(parent, ast.expr) or not (chosen or alternative or default):
            return node
        node = parent


def place(module: Module, node: ast.expr) -> Place:
    """Where the value of `node` goes."""
    node = outer(module, node)
    parent = module.parents[node]
    match parent:
        case ast.keyword(arg=str(name)):
            call = module.parents[parent]
            return _argument(module, call, name) if isinstance(call, ast.Call) else Place.UNKNOWN
        case ast.Call() if node in parent.args:
            return _argument(module, parent, parent.args.index(node))
        case ast.Assign(targets=targets):
            return _assigned(module, targets)
        case ast.AnnAssign(target=target):
            return _assigned(module, [target])
        case ast.NamedExpr(target=target):
            return Place.TEXT if _holds_device(module, target) else Place.UNKNOWN
        case ast.arguments():
            if _parameter_scales_gradients(module, parent, node):
                return Place.PRECISION
            return Place.TEXT if _parameter_is_device(module, parent, node) else Place.UNKNOWN
        case ast.Compare():
            return Place.COMPARED
        case ast.Attribute() if isinstance(module.parents[parent], ast.Compare):
            return Place.COMPARED
        case ast.Dict():
            return Place.TEXT if _key_says_device(parent, node) else Place.UNKNOWN
        case ast.Return():
            function = module.function(node)
            named = function is not None and DEVICE_NAME.search(function.name)
            return Place.TEXT if named else Place.UNKNOWN
    return Place.UNKNOWN


def _key_says_device(table: ast.Dict, value: ast.expr) -> bool:
    key = table.keys[table.values.index(value)] if value in table.values else None
    return isinstance(key, ast.Constant) and isinstance(key.value, str) and bool(DEVICE_NAME.search(key.value))


def _argument(module: Module, call: ast.Call, at: int | str) -> Place:
    callee = module.callee(call)
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if callee in AUTOCAST:
        return Place.PRECISION
    if method in ("assertEqual", "assertEquals") and _compares_type(call):
        return Place.TEXT
    if callee in TEXT_ONLY and at in (0, "device_type"):
        return Place.TEXT
    if callee == "torch.device":
        return Place.TEXT
    if callee in ("torch.set_default_device", "torch.Generator", "torch.get_device_module") and at in (0, "device"):
        return Place.TORCH
    if callee in TAKES_DEVICE_FIRST and at == 0:
        return Place.TORCH
    if callee == "torch.load" and at in (1, "map_location"):
        return Place.TORCH
    if method in TENSOR_FACTORIES and at in ("device", 0 if method == "to" else None):
        return Place.TORCH
    if callee.startswith("torch.") and at == "device":
        return Place.TORCH
    if at in DEVICE_KEYWORDS or (isinstance(at, str) and DEVICE_NAME.search(at)):
        return Place.TEXT
    named = call.args[1] if len(call.args) == 3 and isinstance(call.args[1], ast.Constant) else None
    if isinstance(call.func, ast.Name) and call.func.id == "getattr" and at == 2 and named is not None:
        return Place.TEXT if DEVICE_NAME.search(str(named.value)) else Place.UNKNOWN
    if at == "default" and method == "add_argument":
        return Place.TEXT if _option_is_device(call) else Place.UNKNOWN
    return Place.UNKNOWN


def _compares_type(call: ast.Call) -> bool:
    """Whether a test case compares the type of a device with the other of two arguments."""
    return any(isinstance(a, ast.Attribute) and dotted(a).endswith("device.type") for a in call.args[:2])


def _option_is_device(call: ast.Call) -> bool:
    names = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    return any(DEVICE_NAME.search(name.lstrip("-").replace("-", "_")) for name in names)


def _assigned(module: Module, targets: list[ast.expr]) -> Place:
    if not all(_holds_device(module, target) for target in targets):
        return Place.UNKNOWN
    return Place.NAMED if len(targets) == 1 and isinstance(targets[0], ast.Name) else Place.TEXT


def _holds_device(module: Module, target: ast.expr) -> bool:
    """Whether a variable is a device by its name, or because it is used as one."""
    if isinstance(target, ast.Name):
        return bool(DEVICE_NAME.search(target.id)) or any(
            _used_as_device(module, node) for node in loads(module, target)
        )
    if isinstance(target, ast.Attribute):
        return bool(DEVICE_NAME.search(target.attr))
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        return isinstance(target.slice.value, str) and bool(DEVICE_NAME.search(target.slice.value))
    return False


def parameter_of(arguments: ast.arguments, default: ast.expr) -> str:
    """The parameter that has `default` for its default value."""
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)]
    pairs += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None]
    return next((argument.arg for argument, value in pairs if value is default), "")


def _parameter_is_device(module: Module, arguments: ast.arguments, default: ast.expr) -> bool:
    name = parameter_of(arguments, default)
    if DEVICE_NAME.search(name):
        return True
    scope = module.own_scopes[module.parents[arguments]]
    return any(
        node.id == name and module.lookup(node) is not None and module.lookup(node)[0] is scope  # type: ignore[index]
        for node in module.of_type(ast.Name)
        if isinstance(node.ctx, ast.Load) and _used_as_device(module, node)
    )


def _parameter_scales_gradients(module: Module, arguments: ast.arguments, default: ast.expr) -> bool:
    """Whether a parameter is handed to a gradient scaler, which works on CUDA alone."""
    name = parameter_of(arguments, default)
    function = module.parents[arguments]
    return any(
        isinstance(node, ast.Call)
        and module.callee(node).endswith(".GradScaler")
        and any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))
        for node in ast.walk(function)
    )


def loads(module: Module, target: ast.Name) -> list[ast.Name]:
    """Every place that reads the variable that `target` writes."""
    found = module.scopes[target].lookup(target.id)
    if found is None:
        return []
    return [
        node
        for node in module.of_type(ast.Name)
        if node.id == target.id
        and isinstance(node.ctx, ast.Load)
        and (other := module.lookup(node)) is not None
        and other[0] is found[0]
    ]


def _used_as_device(module: Module, node: ast.Name) -> bool:
    """Whether this read hands the value to something that takes a device."""
    value = outer(module, node)
    parent = module.parents[value]
    if isinstance(parent, ast.keyword):
        call = module.parents[parent]
        return isinstance(call, ast.Call) and parent.arg is not None and _takes_device(module, call, parent.arg)
    return (
        isinstance(parent, ast.Call)
        and value in parent.args
        and _takes_device(module, parent, parent.args.index(value))
    )


def _takes_device(module: Module, call: ast.Call, at: int | str) -> bool:
    if module.callee(call) in ("torch.device", "torch.cuda.set_device", "torch.cuda.device"):
        return at in (0, "type", "device")
    if isinstance(call.func, ast.Attribute) and call.func.attr == "cuda":
        return True
    return at == "device" or _argument(module, call, at) is Place.TORCH


READS_INDEX = re.compile(
    r"\.index\b(?!\()|\.split\(\s*[\"']:[\"']|\[-1\]\)|\bdevice\s*[!=]=|[!=]=\s*[\w.]*device\b|\bdevice\s+(not\s+)?in\b"
)
"""Code that takes a device apart: there `cuda:0` and `cuda` are not the same."""


def zero_is_current(module: Module, project: Project) -> bool:
    """Whether `cuda:0` can only mean what `cuda` means: nothing changes the current device or reads an index."""
    if project.facts.selects_device or READS_INDEX.search(module.source):
        return False
    zeros = [device for device in cuda_devices(module) if device.index is Index.ZERO]
    return all(place(module, device.node) not in (Place.COMPARED, Place.UNKNOWN) for device in zeros)


def default_device_kind(module: Module, value: ast.expr | None, zero: bool = False) -> str:
    """How an expression stands for the default device of the machine: as `text`, as `device`, or not (empty).

    Both the CUDA-only and the migrated spelling count: `'cuda' if torch.cuda.is_available() else 'cpu'`,
    `torch.device(...)` around it, and what tpuport writes in their place. `zero` lets `cuda:0` count as `cuda`.
    """
    match value:
        case ast.Call(args=[inner], keywords=[]) if module.callee(value) == "torch.device":
            return "device" if default_device_kind(module, inner, zero) == "text" else ""
        case ast.Call(args=[], keywords=[]) if module.callee(value) == "torch.accelerator.current_accelerator":
            return ""
        case ast.IfExp(test=ast.Call() as test, body=body, orelse=orelse):
            return _chosen(module, test, body, orelse, zero)
        case ast.Constant(value="cuda"):
            return "text"
        case ast.Constant(value="cuda:0") if zero:
            return "text"
    return ""


def _chosen(module: Module, test: ast.Call, body: ast.expr, orelse: ast.expr, zero: bool) -> str:
    if test.args or module.callee(test) not in ("torch.cuda.is_available", "torch.accelerator.is_available"):
        return ""
    cpu_text = isinstance(orelse, ast.Constant) and orelse.value == "cpu"
    device = cuda_device(module, body)
    if device is not None and (device.index is Index.CURRENT or (zero and device.index is Index.ZERO)):
        return ("text" if cpu_text else "") if device.is_text else ("device" if _is_cpu_device(module, orelse) else "")
    if dotted(body).endswith(".type") or (isinstance(body, ast.Attribute) and body.attr == "type"):
        is_current = isinstance(body, ast.Attribute) and _is_current(module, body.value)
        return "text" if cpu_text and is_current else ""
    return "device" if _is_current(module, body) and _is_cpu_device(module, orelse) else ""


def _is_current(module: Module, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and module.callee(node) == "torch.accelerator.current_accelerator"


def _is_cpu_device(module: Module, node: ast.expr) -> bool:
    match node:
        case ast.Call(args=[ast.Constant(value="cpu")], keywords=[]):
            return module.callee(node) == "torch.device"
    return False
