"""Strings and `torch.device`s that name a CUDA device."""

import ast
from collections.abc import Iterator

from tpuport.analysis.devices import CudaDevice, Index, Place, cuda_devices, outer, place, zero_is_current
from tpuport.analysis.guards import ACCELERATOR_AVAILABLE, compares_with_cuda
from tpuport.analysis.libraries import with_own_kernels
from tpuport.analysis.module import Module, dotted
from tpuport.analysis.receivers import receiver
from tpuport.checks.device_comparison import is_mode, keeps_cuda_and_cpu, type_of_device
from tpuport.draft import Context, Draft, Role
from tpuport.model import Replace, Rule, Severity

SETTLED_ARGUMENTS = {
    "device_type": "torch.random.fork_rng",
    "device_id": "torch.distributed.init_process_group",
}
"""Arguments that other rules settle, with the function that takes them."""

TYPES = "a parser of options that goes by it refuses other devices"
REFLECTION = {"getattr", "hasattr", "setattr", "delattr"}
CURRENT = "torch.accelerator.current_accelerator()"


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every CUDA device that is written out, wherever it goes."""
    for device in cuda_devices(context.module):
        draft = _draft(context, rule, device)
        if draft is not None:
            yield draft


def _draft(context: Context, rule: Rule, device: CudaDevice) -> Draft | None:
    module = context.module
    where = place(module, device.node)
    if _settled_elsewhere(context, device.node):
        return None
    if where is Place.COMPARED:
        return _compared(context, rule, device)
    if where is Place.PRECISION and _is_chosen_for_autocast(module, device.node):
        where = Place.TEXT
    if where is Place.PRECISION:
        if not isinstance(module.parents[outer(module, device.node)], ast.arguments):
            return None
        reason = "it reaches a gradient scaler, which works on CUDA alone and turns itself off elsewhere"
        return Draft(rule, device.node, Role.NEUTRAL, severity=Severity.INFO, reason=reason)
    if where is Place.TEXT and (library := _foreign_library(module, device.node)):
        reason = f"{library} knows no TPU: what it runs on has to be decided"
        return Draft(rule, device.node, Role.BLOCKS, severity=Severity.WARNING, reason=reason)
    if where is Place.UNKNOWN and _reaches_a_device(context, device):
        where = Place.TEXT
    if where is Place.UNKNOWN:
        where = _revealed(context, device) or Place.UNKNOWN
    if where is Place.UNKNOWN:
        return _not_followed(context, rule, device)
    index = device.index
    if index is Index.ZERO and zero_is_current(module, context.project):
        index = Index.CURRENT
    if index is not Index.CURRENT:
        return _indexed(context, rule, device)
    return Draft(rule, device.node, Role.MOVES, (Replace(module.span(device.node), _default(context, device, where)),))


def _reaches_a_device(context: Context, device: CudaDevice) -> bool:
    """Whether some file of the run hands a value of the literal's name to where torch takes a device."""
    name = receiver(context.module, device.node).rpartition(".")[2]
    return bool(name) and name in context.project.facts.device_names


def _foreign_library(module: Module, node: ast.expr) -> str:
    """The library of its own kernels that a device is named to; empty for torch and all that builds on it."""
    parent = module.parents[outer(module, node)]
    call = module.parents[parent] if isinstance(parent, ast.keyword) else parent
    return with_own_kernels(module.callee(call)) if isinstance(call, ast.Call) else ""


def _settled_elsewhere(context: Context, node: ast.expr) -> bool:
    """Whether another rule owns the expression around this literal."""
    module = context.module
    parent = module.parents[node]
    if isinstance(parent, ast.IfExp) and (type_of_device(parent) or _names_accelerator(context, parent, node)):
        return True
    if isinstance(parent, ast.Tuple) and keeps_cuda_and_cpu(module.parents[parent]):
        return True
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.attr == "startswith":
        return True
    if isinstance(parent, ast.keyword) and parent.arg in SETTLED_ARGUMENTS:
        call = module.parents[parent]
        return isinstance(call, ast.Call) and module.callee(call) == SETTLED_ARGUMENTS[parent.arg]
    return isinstance(parent, ast.Call) and module.callee(parent) in ("torch.cuda.set_device", "torch.cuda.device")


def _is_chosen_for_autocast(module: Module, node: ast.expr) -> bool:
    """Whether a device type is one of several that a choice hands to autocast."""
    value = outer(module, node)
    parent = module.parents[value]
    call = module.parents[parent] if isinstance(parent, ast.keyword) else parent
    return value is not node and isinstance(call, ast.Call) and module.callee(call).endswith("autocast")


def _is_not_cpu(test: ast.expr) -> bool:
    match test:
        case ast.Compare(left=ast.Attribute(attr="type"), ops=[ast.NotEq()], comparators=[ast.Constant(value="cpu")]):
            return True
    return False


def _names_accelerator(context: Context, choice: ast.IfExp, node: ast.expr) -> bool:
    """`<accelerator>.type if torch.accelerator.is_available() else "cuda"`: a name to compare with, never a device."""
    if choice.orelse is node and _is_not_cpu(choice.test):
        return True  # `device.type if device.type != "cpu" else "cuda"`
    tested = isinstance(choice.test, ast.Call) and context.module.callee(choice.test) == ACCELERATOR_AVAILABLE
    return tested and choice.orelse is node


def _compared(context: Context, rule: Rule, device: CudaDevice) -> Draft | None:
    """A comparison that is no known test for CUDA: with a `torch.device`, or with a numbered device."""
    comparison = context.module.parents[outer(context.module, device.node)]
    if isinstance(comparison, ast.Attribute):
        comparison = context.module.parents[comparison]
    if compares_with_cuda(comparison) is not None:
        return None
    reason = "compare `.type` with that of the accelerator, and the index apart from it"
    message = f"a device is compared with {context.module.text(device.node)}"
    return Draft(rule, device.node, Role.BLOCKS, severity=Severity.WARNING, message=message, reason=reason)


def _revealed(context: Context, device: CudaDevice) -> Place | None:
    """A literal in an unknown place is a device if it is chosen by a test for CUDA against `cpu`."""
    module = context.module
    if not device.is_text:
        return Place.TEXT
    parent = module.parents[device.node]
    if isinstance(parent, ast.IfExp) and _is_cpu(parent.orelse) and parent.body is device.node:
        return Place.TEXT if context.guards.has_accelerator(device.node) else None
    returned = isinstance(parent, ast.Return) and context.guards.has_accelerator(device.node)
    function = module.function(device.node)
    if returned and function is not None:
        others = [n.value for n in ast.walk(function) if isinstance(n, ast.Return) and n.value is not None]
        return Place.TEXT if any(_is_cpu(value) for value in others) else None
    return None


def _is_cpu(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == "cpu"


def _not_followed(context: Context, rule: Rule, device: CudaDevice) -> Draft | None:
    module = context.module
    if _is_listed_type(module, device.node):
        message = f"an annotation takes {module.text(device.node)} and names no other accelerator"
        return Draft(rule, device.node, Role.NEUTRAL, severity=Severity.INFO, message=message, reason=TYPES)
    parent = module.parents[outer(module, device.node)]
    if isinstance(parent, ast.Subscript | ast.Expr) or (isinstance(parent, ast.Dict) and device.node in parent.keys):
        return None
    if _is_no_device(module, parent):
        return None
    message = f"{module.text(device.node)} does not visibly reach a device"
    if is_mode(_name_of(module, device.node)):
        reason = "it is taken for the name of a mode, not of a device"
        return Draft(rule, device.node, Role.NEUTRAL, severity=Severity.INFO, message=message, reason=reason)
    reason = "where the value goes is not known"
    return Draft(rule, device.node, Role.BLOCKS, severity=Severity.WARNING, message=message, reason=reason)


def _is_no_device(module: Module, parent: ast.AST) -> bool:
    """Whether a string is certainly something else: looked up by name, part of a path, an option's destination."""
    if isinstance(parent, ast.Call):
        function = dotted(parent.func)
        return function in REFLECTION or (module.callee(parent) or function).endswith("path.join")
    return isinstance(parent, ast.keyword) and parent.arg == "dest"


def _is_listed_type(module: Module, node: ast.expr) -> bool:
    """Whether a string is one of those that `Literal` allows."""
    annotated = (up for _, up in module.ancestors(node) if isinstance(up, ast.Subscript))
    return any(dotted(up.value).rpartition(".")[2] == "Literal" for up in annotated)


def _name_of(module: Module, node: ast.expr) -> str:
    """The name that a value is given, or that a list which holds it is tested for."""
    listed = module.parents[outer(module, node)]
    test = module.parents[listed] if isinstance(listed, ast.Tuple | ast.List | ast.Set) else None
    return dotted(test.left) if isinstance(test, ast.Compare) else receiver(module, node)


def _default(context: Context, device: CudaDevice, where: Place) -> str:
    """What stands for the machine's default device in that place."""
    module = context.module
    node = device.node
    parent = module.parents[node]
    guarded = context.guards.has_accelerator(node)
    if guarded and (isinstance(parent, ast.IfExp | ast.Assign) or where is Place.NAMED):
        return f"{CURRENT}.type" if device.is_text else CURRENT
    if where is Place.NAMED and outer(module, node) is node:
        return "{new device.type}" if device.is_text else "{new device}"
    if not device.is_text or (where is Place.TORCH and not isinstance(parent, ast.IfExp | ast.BoolOp)):
        return "{device}"
    return "{device.type}"


def _indexed(context: Context, rule: Rule, device: CudaDevice) -> Draft:
    """A numbered device stays as it is on CUDA; elsewhere each process has one device."""
    module = context.module
    node = device.node
    default = "{device.type}" if device.is_text else "{device}"
    parent = module.parents[node]
    if isinstance(parent, ast.IfExp) and parent.body is node and context.guards.tests_availability(parent.test):
        if not _names_cpu(context, parent.orelse):
            return Draft(rule, node, Role.CUDA_ONLY)
        return Draft(rule, node, Role.CUDA_ONLY, (Replace(module.span(parent.orelse), default),))
    span = module.span(node)
    alternative = f"{CURRENT}.type" if device.is_text else CURRENT
    if not context.guards.has_accelerator(node):
        alternative = default
    return Draft(
        rule, node, Role.MOVES, (Replace(span, f"{{0}} if torch.cuda.is_available() else {alternative}", (span,)),)
    )


def _names_cpu(context: Context, node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and context.module.callee(node) == "torch.device" and node.args:
        node = node.args[0]
    return _is_cpu(node)
