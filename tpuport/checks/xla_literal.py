"""Devices written out as `"xla"`."""

import ast
import re
from collections.abc import Iterator

from tpuport.analysis.devices import AUTOCAST, Place, outer, place
from tpuport.analysis.module import dotted
from tpuport.analysis.xla import GROUP, ROOT
from tpuport.draft import Context, Draft, Role
from tpuport.model import Replace, Rule

XLA = re.compile(r"xla(:\d+)?$")


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every such text that is a device, or may be one in a file that uses PyTorch/XLA."""
    module = context.module
    if "torch" not in module.source:
        return
    for node in module.of_type(ast.Constant):
        if type(node.value) is str and XLA.match(node.value) and not _is_settled(context, node):
            draft = _draft(context, rule, node)
            if draft is not None:
                yield draft


def _is_settled(context: Context, node: ast.Constant) -> bool:
    """Whether the rules for comparisons, mixed precision or process groups speak for it."""
    module = context.module
    parent = module.parents[outer(module, node)]
    call = module.parents[parent] if isinstance(parent, ast.keyword) else parent
    if isinstance(call, ast.Call):
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        return method == "startswith" or module.callee(call) in {*AUTOCAST, GROUP}
    if isinstance(parent, ast.Tuple | ast.List | ast.Set):
        parent = module.parents[parent]
    return isinstance(parent, ast.Compare | ast.Subscript)


def _draft(context: Context, rule: Rule, node: ast.Constant) -> Draft | None:
    module = context.module
    parent = module.parents[node]
    device: ast.expr = node
    if isinstance(parent, ast.Call) and module.callee(parent) == "torch.device":
        if len(parent.args) + len(parent.keywords) > 1:
            return Draft(rule, parent, Role.BLOCKS, reason="a device is picked by its number, and a process has one")
        device = parent
    if node.value not in ("xla", "xla:0"):
        return Draft(rule, device, Role.BLOCKS, reason="a device is picked by its number, and a process has one")
    where = place(module, device)
    if where is Place.COMPARED:
        return Draft(rule, device, Role.BLOCKS, reason="compare `.type` with that of the accelerator")
    if where in (Place.UNKNOWN, Place.PRECISION) and device is node:
        if ROOT not in module.source or _is_text(module.parents[outer(module, node)], node):
            return None
        return Draft(rule, node, Role.BLOCKS, reason="where the value goes is not known")
    variable = "device.type" if device is node and where is not Place.TORCH else "device"
    new = "new " if where is Place.NAMED and outer(module, device) is device else ""
    return Draft(rule, device, Role.MOVES, (Replace(module.span(device), f"{{{new}{variable}}}"),))


def _is_text(parent: ast.AST, node: ast.Constant) -> bool:
    """Whether the text is certainly no device: a statement, a key, a message, part of a path."""
    if isinstance(parent, ast.Dict):
        return node in parent.keys
    if isinstance(parent, ast.Call):
        return dotted(parent.func).rpartition(".")[2] in (
            "print",
            "info",
            "debug",
            "warning",
            "join",
            "getattr",
            "hasattr",
        )
    return isinstance(parent, ast.Expr)
