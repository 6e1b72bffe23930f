"""Collectives of PyTorch/XLA, which give new tensors where those of torch.distributed write into given ones."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant
from tpuport.analysis.module import Module
from tpuport.analysis.xla import MODEL, REDUCTIONS, Xla, is_xla, only_takes
from tpuport.checks.xla_process import WORLD_SIZE
from tpuport.draft import Context, Draft, Role
from tpuport.model import Edit, InsertBefore, Replace, Rule, Span

REDUCE = f"{MODEL}.all_reduce"
GATHER = f"{MODEL}.all_gather"
_EACH = "`for tensor in tensors: DIST.NAME(tensor)` does it in place"
ANSWERS = {
    REDUCE: "`DIST.all_reduce(tensor)` reduces one in place, and each of a list by itself; groups go by `group=`",
    GATHER: "`DIST.all_gather(parts, tensor)` fills a list of tensors like it, which `torch.cat(parts, dim)` joins",
    f"{MODEL}.reduce_scatter": "`DIST.reduce_scatter_tensor(output, input)` fills a tensor that is given, along "
    "dimension 0: another one is moved there first",
    f"{MODEL}.all_to_all": "`DIST.all_to_all(outputs, list(x.chunk(n, split_dimension)))` fills given tensors, which "
    "`torch.cat(outputs, concat_dimension)` joins",
    f"{MODEL}.collective_permute": "`DIST.batch_isend_irecv` of a `P2POp` for each pair sends the same tensors",
    f"{MODEL}.collective_broadcast": _EACH.replace("NAME(tensor)", "broadcast(tensor, root_ordinal)"),
    f"{MODEL}.broadcast_master_param": "DistributedDataParallel does it when it is built; without it "
    "`for p in model.parameters(): DIST.broadcast(p.data, 0)`, and the same for its buffers",
    f"{MODEL}.send": "`DIST.send(tensor, rank)`",
    f"{MODEL}.recv": "`DIST.recv(tensor, rank)`",
    f"{MODEL}.all_reduce_bucketized_gradients": _EACH.replace("NAME", "all_reduce"),
    f"{MODEL}.all_gather_bucketized": "`DIST.all_gather_into_tensor` of each tensor",
    f"{MODEL}.reduce_scatter_bucketized": "`DIST.reduce_scatter_tensor` of each tensor",
}
"""What does the same in torch.distributed; DIST is what the module calls it."""

_PASSES_ON = (
    *(ast.Call, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.keyword, ast.Subscript, ast.Tuple),
    *(ast.FormattedValue, ast.JoinedStr),
)
"""What hands a value on in any case, so that a collective in it runs as often as its statement."""

_STRINGS = {"sum": "SUM", "mul": "PRODUCT", "min": "MIN", "max": "MAX"}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every collective; one of a single tensor whose result is used is written out."""
    xla = context.xla
    for use in xla.of(*ANSWERS):
        call = context.module.call_of(use.node)
        message = rule.message.replace("{name}", use.name)
        edits: tuple[Edit, ...] = ()
        if call is not None and _may_precede(context.module, call):
            edits = _reduced(xla, call) if use.name == REDUCE else _gathered(xla, call) if use.name == GATHER else ()
        if edits:
            yield Draft(rule, call or use.node, Role.MOVES, edits, message)
        else:
            reason = ANSWERS[use.name].replace("DIST", xla.distributed)
            yield Draft(rule, call or use.node, Role.BLOCKS, message=message, reason=reason)


def _reduced(xla: Xla, call: ast.Call) -> tuple[Edit, ...]:
    """The edits for a reduction of one tensor, if that is what it is."""
    module = xla.module
    operation, tensor = argument(call, 0, "reduce_type"), argument(call, 1, "inputs")
    scale = argument(call, 2, "scale")
    name = _name(module, "reduced")
    if tensor is None or not only_takes(call, 3, "reduce_type", "inputs", "scale", "pin_layout"):
        return ()
    op = _operation(module, operation)
    if not op or not name or not _is_plain(module, tensor) or _may_be_list(module, tensor):
        return ()
    if scale is not None and not is_constant(scale, 1, 1.0) and not _divides_by_processes(module, scale):
        return ()
    told = "" if op == "SUM" else f", op={xla.distributed}.ReduceOp.{op}"
    code = f"{name} = {_operand(module, tensor)}.clone()\n"
    code += _where_there_is_a_group(xla, call, f"{xla.distributed}.all_reduce({name}{told})\n")
    scaled = scale is not None and not is_constant(scale, 1, 1.0)
    new, holes = (f"{name} * ({{0}})", (module.span(scale),)) if scaled and scale is not None else (name, ())
    return _edits(module, call, code, new, holes)


def _gathered(xla: Xla, call: ast.Call) -> tuple[Edit, ...]:
    """The edits for a gathering of one tensor that has a name."""
    module = xla.module
    tensor, dim = argument(call, 0, "value"), argument(call, 1, "dim")
    name = _name(module, "gathered")
    if not only_takes(call, 2, "value", "dim", "pin_layout") or not name or not isinstance(tensor, ast.Name):
        return ()
    if not _is_plain(module, tensor) or _may_be_list(module, tensor) or (dim and not _is_plain(module, dim)):
        return ()
    dist = xla.distributed
    filled = f"{name} = [torch.empty_like({tensor.id}) for _ in range({dist}.get_world_size())]\n"
    filled += f"{dist}.all_gather({name}, {tensor.id}.contiguous())\n"
    code = filled if xla.has_group(call) else f"{name} = [{tensor.id}]\n" + _where_there_is_a_group(xla, call, filled)
    joined = f"torch.cat({name})" if dim is None or is_constant(dim, 0) else f"torch.cat({name}, {module.text(dim)})"
    return _edits(module, call, code, joined, ())


def _edits(module: Module, call: ast.Call, code: str, new: str, holes: tuple[Span, ...]) -> tuple[Edit, ...]:
    return (InsertBefore(module.span(module.statement(call)), code), Replace(module.span(call), new, holes))


def _where_there_is_a_group(xla: Xla, call: ast.Call, code: str) -> str:
    if xla.has_group(call):
        return code
    lines = "".join(f"    {line}\n" for line in code.splitlines())
    return f"if {xla.distributed}.is_initialized():\n{lines}"


def _may_precede(module: Module, call: ast.Call) -> bool:
    """Whether the collective may come before the rest of its statement, which is run as often as the call is."""
    statement = module.statement(call)
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Return | ast.Expr) or statement.value is None:
        return False
    collectives = [node for node in ast.walk(statement) if isinstance(node, ast.Call) and is_xla(module.callee(node))]
    node: ast.AST = call
    while node is not statement.value:
        node = module.parents[node]
        if not isinstance(node, _PASSES_ON):
            return False
    others = [one for one in collectives if module.callee(one) in (REDUCE, GATHER)]
    return others == [call] and not module.is_bare(call)


def _operation(module: Module, node: ast.expr | None) -> str:
    if node is None:
        return ""
    if isinstance(node, ast.Constant):
        return _STRINGS.get(str(node.value), "")
    return REDUCTIONS.get(module.qualified(node), "")


def _divides_by_processes(module: Module, scale: ast.expr) -> bool:
    """Whether a scale makes a mean: a single process, which PyTorch/XLA does not scale, has it 1."""
    if not isinstance(scale, ast.BinOp) or not isinstance(scale.op, ast.Div) or not is_constant(scale.left, 1, 1.0):
        return False
    return isinstance(scale.right, ast.Call) and module.callee(scale.right) in WORLD_SIZE


def _is_plain(module: Module, node: ast.expr) -> bool:
    return "\n" not in module.text(node) and not any(is_xla(module.qualified(inner)) for inner in ast.walk(node))


def _may_be_list(module: Module, node: ast.expr) -> bool:
    """Whether an expression is a list, or a name that holds one somewhere: those are reduced in place."""
    lists = (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp)
    if isinstance(node, lists) or not isinstance(node, ast.Name):
        return isinstance(node, lists)
    return any(
        isinstance(one.value, lists) or (isinstance(one.value, ast.Call) and "gradients" in ast.unparse(one.value.func))
        for one in module.of_type(ast.Assign)
        if any(isinstance(target, ast.Name) and target.id == node.id for target in one.targets)
    )


def _operand(module: Module, node: ast.expr) -> str:
    text = module.text(node)
    return text if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript) else f"({text})"


def _name(module: Module, name: str) -> str:
    """A name that the module does not give to anything else; empty where it does."""
    return next((free for free in (name, f"{name}_values", f"tpuport_{name}") if free not in module.bound_names), "")
