"""`DataParallel` drives several CUDA devices from one process; a TPU process has one device.

Its constructor works there, and with no `device_ids` its `forward` only calls the module that it holds, as it does
on a CPU: `.module` and the `module.` in names of parameters stay (seen with torch 2.13).
"""

import ast
from collections.abc import Iterator

from tpuport.analysis.guards import Condition, blocks, conditions
from tpuport.analysis.module import dotted
from tpuport.draft import Context, Draft, Role
from tpuport.mapping import NO_CUDA, OTHER_THERE
from tpuport.model import Edit, InsertAfter, Replace, Rule, Severity

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
FUNCTION = "torch.nn.parallel.data_parallel"
NAMES = {*WRAPPERS, *PARTS, FUNCTION}
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
        elif use.name == FUNCTION and _is_chosen_for_cuda(context, call):
            yield Draft(rule, use.node, Role.CUDA_ONLY)
        elif use.name == FUNCTION and (plain := _called_plainly(context, rule, use.node, call)):
            yield plain
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
    guards = context.guards
    if any(guards.tests_absence(condition) for condition in conditions(module, statement)):
        reason = "no accelerator is there, so it only calls its module"
        yield Draft(rule, node, Role.NEUTRAL, severity=Severity.INFO, reason=reason)
        return
    there = NO_CUDA if guards.has_accelerator(statement) else OTHER_THERE
    code = f"""if {there}:
    {emptied}  # one device a process: it only calls its module
"""
    edits: tuple[Edit, ...] = (InsertAfter(module.span(statement), code),)
    yield Draft(rule, node, Role.MOVES, edits)


def _called_plainly(context: Context, rule: Rule, node: ast.expr, call: ast.Call) -> Draft | None:
    """A draft that calls the module itself where no CUDA is there; None if its arguments are not written out."""
    module = context.module
    if call.keywords or not 2 <= len(call.args) <= 4:
        return None
    wrapped, inputs = call.args[:2]
    if not dotted(wrapped) or not isinstance(inputs, ast.Tuple) or not inputs.elts:
        return None
    if any(isinstance(part, ast.Starred) for part in (*call.args, *inputs.elts)):
        return None
    holes = (call, wrapped, *inputs.elts)
    arguments = ", ".join(f"{{{number}}}" for number in range(2, len(holes)))
    template = f"{{0}} if torch.cuda.is_available() else {{1}}({arguments})"
    edit = Replace(module.span(call), template, tuple(map(module.span, holes)))
    return Draft(rule, node, Role.MOVES, (edit,))


def _is_chosen_for_cuda(context: Context, call: ast.Call) -> bool:
    """Whether the call is what a conditional expression takes where CUDA is there."""
    arm = context.module.parents[call]
    return isinstance(arm, ast.IfExp) and arm.body is call and context.guards.tests_availability(arm.test)


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
