"""The process group backend `"nccl"`, where it is written out."""

import ast
from collections.abc import Iterator

from tpuport.analysis.branches import OUTPUT_CALLS
from tpuport.analysis.calls import argument, is_constant, is_unpacked
from tpuport.analysis.devices import outer, parameter_of
from tpuport.analysis.module import Module, dotted
from tpuport.analysis.receivers import receiver
from tpuport.draft import Context, Draft, Role
from tpuport.model import Replace, Rule, Severity

NCCL_THERE = "torch.distributed.is_nccl_available"
BACKEND = "torch.distributed.Backend.NCCL"
DISTRIBUTED = "torch.distributed"
INIT = "torch.distributed.init_process_group"
TAKES_BACKEND = {INIT: 0, "torch.distributed.new_group": 2, "torch.distributed.split_group": None}
"""Where each function takes a backend by position, beside `backend=`."""

DEFAULT = "torch.distributed.get_default_backend_for_device({device})"


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every string that names NCCL as a backend."""
    module = context.module
    for node in module.texts:
        text = str(node.value)
        if len(text) == len("nccl") and text.lower() == "nccl":
            yield _draft(context, rule, node)
        elif text == "gloo" and _is_for_cuda(context, node):
            yield Draft(rule, node, Role.CUDA_ONLY)
        elif "cuda:nccl" in text:
            yield _composite(context, rule, node)
    for call in module.calls_of(INIT):
        if not is_unpacked(call) and not call.args and _names_no_backend(call):
            message = "no backend is named, and on a TPU DistributedDataParallel then finds none"
            reason = "pass `torch.distributed.get_default_backend_for_device(device)`: on CUDA that is NCCL, as now"
            yield Draft(rule, call, Role.NEUTRAL, message=message, reason=reason, severity=Severity.WARNING)
    for name in module.attributes_by_name.get("NCCL", []):
        if not module.qualified(name).startswith("torch.") and _compares(module, name):
            yield Draft(rule, name, Role.BLOCKS, reason="what the test is for has to be judged by hand")
    for use in module.uses_of((NCCL_THERE, BACKEND)):
        if use.name == NCCL_THERE:
            arm = module.parents.get(module.call_of(use.node) or use.node)
            if isinstance(arm, ast.IfExp) and is_constant(arm.body, "nccl"):
                continue  # the backend chosen by it has a draft of its own
            yield Draft(rule, use.node, Role.BLOCKS, reason="a TPU host has no NCCL; its own backend is the default")
        elif names_backend_of_group(module, use.node):
            yield Draft(rule, use.node, Role.MOVES, (_default(module, use.node, use.node),))
        else:
            yield Draft(rule, use.node, Role.BLOCKS, reason="what it is compared with or passed to is not followed")


def _compares(module: Module, node: ast.AST) -> bool:
    """Whether it is a side of a comparison, or in a list that is one."""
    parent = module.parents[node]
    if isinstance(parent, ast.Tuple | ast.List | ast.Set):
        parent = module.parents[parent]
    return isinstance(parent, ast.Compare)


def _is_for_cuda(context: Context, node: ast.Constant) -> bool:
    """Whether Gloo is named for CUDA alone, beside the default backend of other devices."""
    arm = context.module.parents[node]
    if not isinstance(arm, ast.IfExp) or arm.body is not node or not context.guards.tests_availability(arm.test):
        return False
    return isinstance(arm.orelse, ast.Call) and dotted(arm.orelse.func).endswith("get_default_backend_for_device")


def _composite(context: Context, rule: Rule, node: ast.Constant) -> Draft:
    """`"cpu:gloo,cuda:nccl"`: the accelerator's own backend beside the CPU's."""
    module = context.module
    value = outer(module, node)
    known = names_backend_of_group(module, value) or _names_backend(module, module.parents[value], value)
    if node.value not in ("cpu:gloo,cuda:nccl", "cuda:nccl,cpu:gloo") or not known:
        reason = "a backend for each device type has to be chosen by hand: `cpu:gloo` beside the accelerator's own"
        return Draft(rule, node, Role.BLOCKS, reason=reason)
    default = _default(module, value, node)
    template = f'f"cpu:gloo,{{{{device.type}}}}:{{{default.template}}}"'
    return Draft(rule, node, Role.MOVES, (Replace(default.span, template, default.holes),))


def _names_no_backend(call: ast.Call) -> bool:
    named = [argument(call, None, name) for name in ("backend", "device_id")]
    return all(value is None or is_constant(value, None) for value in named)


def _draft(context: Context, rule: Rule, node: ast.Constant) -> Draft:
    module = context.module
    value = outer(module, node)
    parent = module.parents[value]
    arm = module.parents[node]
    if isinstance(arm, ast.IfExp) and arm.body is node and context.guards.tests_availability(arm.test):
        if is_constant(arm.orelse, "gloo"):
            return Draft(rule, node, Role.CUDA_ONLY, (_default(module, value, arm.orelse),))
        if is_constant(arm.orelse, "mpi"):
            return Draft(rule, node, Role.BLOCKS, reason="a TPU would take the CPU's backend")
        return Draft(rule, node, Role.CUDA_ONLY)
    if isinstance(arm, ast.IfExp) and arm.body is node and _asks_for_nccl(module, arm.test):
        return _without_nccl(module, rule, node, arm, value)
    if names_backend_of_group(module, value):
        return Draft(rule, node, Role.MOVES, (_default(module, value, node),))
    if _is_choice(module, parent):
        reason = "a TPU's own backend has another name: who passes this option chooses CUDA's"
        return Draft(rule, node, Role.NEUTRAL, reason=reason, severity=Severity.INFO)
    if isinstance(parent, ast.Compare) and _only_tells(module, parent):
        reason = "it only tells people of NCCL, which a TPU does not use"
        return Draft(rule, node, Role.NEUTRAL, reason=reason, severity=Severity.INFO)
    if isinstance(parent, ast.Compare | ast.Subscript):
        return Draft(rule, node, Role.BLOCKS, reason="what the test is for has to be judged by hand")
    if _names_backend(module, parent, value) or receiver(module, node) in context.project.facts.backend_names:
        return Draft(rule, node, Role.MOVES, (_default(module, value, node),))
    return Draft(rule, node, Role.BLOCKS, reason="where the value goes is not known")


def _only_tells(module: Module, test: ast.expr) -> bool:
    """Whether a test decides no more than whether something is printed or warned of."""
    branch = module.statement(test)
    return isinstance(branch, ast.If) and not branch.orelse and all(map(_is_output, branch.body))


GROUP_ARGUMENTS = {"world_size", "rank", "init_method", "timeout", "store"}
"""What `init_process_group` is told beside the backend."""


def _is_output(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=function)):
            return dotted(function).rpartition(".")[2] in OUTPUT_CALLS
    return False


def _asks_for_nccl(module: Module, test: ast.expr) -> bool:
    return isinstance(test, ast.Call) and module.callee(test) == NCCL_THERE


def _without_nccl(module: Module, rule: Rule, node: ast.Constant, arm: ast.IfExp, value: ast.expr) -> Draft:
    """`"nccl" if is_nccl_available() else "gloo"`: Gloo stays where CUDA lacks NCCL; a TPU takes its own backend."""
    if not is_constant(arm.orelse, "gloo"):
        return Draft(rule, node, Role.CUDA_ONLY)
    default = _default(module, value, arm.orelse)
    template = f"{{0}} if torch.cuda.is_available() else {default.template.replace('{0}', '{1}')}"
    edit = Replace(default.span, template, (default.span, *default.holes))
    return Draft(rule, node, Role.CUDA_ONLY, (edit,))


def _default(module: Module, value: ast.expr, replaced: ast.expr) -> Replace:
    """The default backend of the device at hand in the place of a name; spelled as the call around it is."""
    parent = module.parents[value]
    call = module.parents[parent] if isinstance(parent, ast.keyword) else parent
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        spelled = call.func.value
        if module.qualified(spelled) == DISTRIBUTED:
            return Replace(module.span(replaced), DEFAULT.replace(DISTRIBUTED, "{0}"), (module.span(spelled),))
    return Replace(module.span(replaced), DEFAULT)


def names_backend_of_group(module: Module, value: ast.expr) -> bool:
    """Whether `value` is the backend in a call that makes a process group."""
    parent = module.parents[value]
    call = module.parents[parent] if isinstance(parent, ast.keyword) else parent
    if not isinstance(call, ast.Call) or (callee := module.callee(call)) not in TAKES_BACKEND:
        return False
    return argument(call, TAKES_BACKEND[callee], "backend") is value


def _is_choice(module: Module, parent: ast.AST) -> bool:
    """Whether a value is one of an option's `choices`."""
    keyword = module.parents.get(parent)
    if not isinstance(parent, ast.List | ast.Tuple | ast.Set) or not isinstance(keyword, ast.keyword):
        return False
    call = module.parents[keyword]
    return keyword.arg == "choices" and isinstance(call, ast.Call) and _is_option_of_backend(call)


def _is_option_of_backend(call: ast.Call) -> bool:
    return any(isinstance(a, ast.Constant) and "backend" in str(a.value) for a in call.args)


def _names_backend(module: Module, parent: ast.AST, value: ast.expr) -> bool:
    match parent:
        case ast.Assign(targets=[ast.Name(id=name) | ast.Attribute(attr=name)]):
            return "backend" in name.lower()
        case ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name)):
            return "backend" in name.lower()
        case ast.keyword(arg="default"):
            call = module.parents[parent]
            return isinstance(call, ast.Call) and _is_option_of_backend(call)
        case ast.keyword(arg=str(name)):
            call = module.parents[parent]
            return isinstance(call, ast.Call) and module.callee(call).startswith("torch.") and "backend" in name.lower()
        case ast.arguments():
            return "backend" in parameter_of(parent, value).lower()
        case ast.Dict(keys=keys, values=values) if value in values:
            names = {key.value for key in keys if isinstance(key, ast.Constant)}
            return is_constant(keys[values.index(value)], "backend") and bool(names & GROUP_ARGUMENTS)
    return False
