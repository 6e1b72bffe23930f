"""`DataParallel` drives several CUDA devices from one process; a TPU process has one device.

Its constructor works there, and with no `device_ids` its `forward` only calls the module that it holds, as it does
on a CPU: `.module` and the `module.` in names of parameters stay (seen with torch 2.13).
"""

import ast
from collections.abc import Iterator

from tpuport.analysis.guards import Condition, blocks, conditions
from tpuport.draft import Context, Draft, Role
from tpuport.mapping import OTHER_THERE
from tpuport.model import Edit, InsertAfter, Rule, Severity

WRAPPERS = {"torch.nn.DataParallel", "torch.nn.parallel.DataParallel"}
PARTS = {
    "torch.nn.parallel.scatter",
    "torch.nn.parallel.gather",
    "torch.nn.parallel.replicate",
    "torch.nn.parallel.parallel_apply",
    "torch.nn.parallel.scatter_gather.scatter",
    "torch.nn.parallel.scatter_gather.gather",
    "torch.nn.parallel.scatter_gather.scatter_kwargs",
}
NAMES = {*WRAPPERS, *PARTS, "torch.nn.parallel.data_parallel"}
RETURN_SELF = {"cuda", "cpu", "to", "train", "eval", "half", "float", "double", "bfloat16", "requires_grad_"}
"""Methods of a module that return the module itself."""

COUNTS = {"torch.cuda.device_count", "torch.accelerator.device_count"}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every use; behind a test for several devices it never runs on a TPU."""
    for use in context.module.uses_of(NAMES):
        call = context.module.call_of(use.node)
        if call is None:
            yield Draft(rule, use.node, Role.NEUTRAL, severity=Severity.INFO, reason="it is not called here")
        elif any(_wants_several(context, condition) for condition in conditions(context.module, call)):
            reason = "one process has one TPU device, so this branch is not taken there"
            yield Draft(rule, use.node, Role.NEUTRAL, severity=Severity.INFO, reason=reason)
        elif target := _kept_in(context, call) if use.name in WRAPPERS else "":
            yield from _passed_through(context, rule, use.node, target)
        else:
            yield Draft(rule, use.node, Role.BLOCKS, reason="use DistributedDataParallel, or the plain module")


def _kept_in(context: Context, call: ast.Call) -> str:
    """The variable that a statement assigns the wrapper to, as it is written; empty where there is no such one."""
    value: ast.expr = call
    while True:
        parent = context.module.parents[value]
        match parent:
            case ast.Attribute(attr=attr) if attr in RETURN_SELF:
                outer = context.module.call_of(parent)
                if outer is None:
                    return ""
                value = outer
            case ast.Assign(targets=[ast.Name() | ast.Attribute() | ast.Subscript() as target]):
                return context.module.text(target) if _is_fixed(target) else ""
            case _:
                return ""


def _is_fixed(target: ast.expr) -> bool:
    """Whether the target may be written twice: nothing in it is called."""
    parts = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.expr_context)
    return all(isinstance(node, parts) for node in ast.walk(target))


def _passed_through(context: Context, rule: Rule, node: ast.expr, target: str) -> Iterator[Draft]:
    """A draft that makes the wrapper pass all on where no CUDA is there, unless the next statement does so."""
    module = context.module
    statement = module.statement(node)
    emptied = f"{target}.device_ids = []"
    block = next(block for block in blocks(module.parents[statement]) if statement in block)
    following = block[block.index(statement) + 1 :][:1]
    if following and emptied in module.text(following[0]):
        reason = "it only calls its module where no CUDA is there"
        yield Draft(rule, node, Role.NEUTRAL, severity=Severity.INFO, reason=reason)
        return
    code = f"""if {OTHER_THERE}:
    {emptied}  # one device a process: it only calls its module
"""
    edits: tuple[Edit, ...] = (InsertAfter(module.span(statement), code),)
    yield Draft(rule, node, Role.MOVES, edits)


def _wants_several(context: Context, condition: Condition) -> bool:
    match condition.test:
        case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=int(least))]):
            more = (isinstance(op, ast.Gt) and least >= 1) or (isinstance(op, ast.GtE) and least >= 2)
            fewer = (isinstance(op, ast.LtE) and least >= 1) or (isinstance(op, ast.Lt) and least >= 2)
            return (more if condition.holds else fewer) and _counts_devices(context, left)
    return False


def _counts_devices(context: Context, node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        node = context.module.only_value(node) or node
    return isinstance(node, ast.Call) and context.module.callee(node) in COUNTS
