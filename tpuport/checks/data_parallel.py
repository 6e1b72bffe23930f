"""`DataParallel` drives several CUDA devices from one process; a TPU process has one device."""

import ast
from collections.abc import Iterator

from tpuport.analysis.guards import Condition, conditions
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule, Severity

NAMES = {
    "torch.nn.DataParallel",
    "torch.nn.parallel.DataParallel",
    "torch.nn.parallel.data_parallel",
    "torch.nn.parallel.scatter",
    "torch.nn.parallel.gather",
    "torch.nn.parallel.replicate",
    "torch.nn.parallel.parallel_apply",
    "torch.nn.parallel.scatter_gather.scatter",
    "torch.nn.parallel.scatter_gather.gather",
    "torch.nn.parallel.scatter_gather.scatter_kwargs",
}
COUNTS = {"torch.cuda.device_count", "torch.accelerator.device_count"}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every use; behind a test for several devices it never runs on a TPU."""
    for use in context.module.uses:
        if use.name not in NAMES:
            continue
        call = context.module.call_of(use.node)
        if call is None:
            yield Draft(rule, use.node, Role.NEUTRAL, severity=Severity.INFO, reason="it is not called here")
        elif any(_wants_several(context, condition) for condition in conditions(context.module, call)):
            reason = "one process has one TPU device, so this branch is not taken there"
            yield Draft(rule, use.node, Role.NEUTRAL, severity=Severity.INFO, reason=reason)
        else:
            yield Draft(rule, use.node, Role.BLOCKS, reason="use DistributedDataParallel, or the plain module")


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
