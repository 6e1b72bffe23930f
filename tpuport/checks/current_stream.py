"""`torch.cuda.current_stream` moves where the file orders no CUDA streams by hand."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant, is_unpacked
from tpuport.analysis.devices import cuda_device
from tpuport.analysis.module import Module
from tpuport.draft import Context, Draft, Role
from tpuport.model import DropArgument, Edit, InsertArgument, Rename, Replace, Rule

NAME, GENERIC = "torch.cuda.current_stream", "torch.accelerator.current_stream"
OWN_STREAMS = {
    "torch.cuda.Stream",
    "torch.cuda.stream",
    "torch.cuda.StreamContext",
    "torch.cuda.ExternalStream",
    "torch.cuda.default_stream",
    "torch.cuda.get_stream_from_external",
}
HANDED_ON = "what takes it may need a CUDA stream, which the generic one is not"
TAKES_STREAM = {"record_stream", "wait_stream", "wait", "record", "set_stream", "print", "append"}
"""Methods that are given a stream of whatever device."""

RAW = {"cuda_stream", "priority", "priority_range", "_as_parameter_"}
"""Attributes of a CUDA stream that the generic one lacks."""


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every use; beside CUDA streams of its own the file's streams stay together."""
    module = context.module
    for use in module.uses_of((GENERIC,)):
        if (number := _for_cuda(context, use.node)) is not None:
            yield Draft(rule, number, Role.CUDA_ONLY)
    found = module.uses_of((NAME,))
    reason = _why_it_stays(module) if found else ""
    for use in found:
        call = module.call_of(use.node)
        if reason:
            yield Draft(rule, use.node, Role.BLOCKS, reason=reason)
        elif _is_handed_on(module, use.node if call is None else call):
            yield Draft(rule, use.node, Role.BLOCKS, reason=HANDED_ON)
        elif call is not None and is_unpacked(call):
            yield Draft(rule, use.node, Role.BLOCKS, reason="its arguments are unpacked from a variable")
        else:
            edits = tuple(_device(context, call)) if call is not None else ()
            yield Draft(rule, use.node, Role.MOVES, (Rename(module.span(use.node), NAME, GENERIC), *edits))


def _is_handed_on(module: Module, stream: ast.expr) -> bool:
    """Whether a stream goes to something other than a tensor's or a stream's method, which any stream is right for."""
    parent = module.parents[stream]
    call = module.parents[parent] if isinstance(parent, ast.keyword) else parent
    if not isinstance(call, ast.Call) or call.func is stream:
        return False
    return not (isinstance(call.func, ast.Attribute) and call.func.attr in TAKES_STREAM)


def _for_cuda(context: Context, node: ast.expr) -> ast.expr | None:
    """The device number of a stream that is asked for on CUDA only."""
    call = context.module.call_of(node)
    value = argument(call, 0, "device") if call is not None else None
    return value.body if isinstance(value, ast.IfExp) and context.guards.tests_availability(value.test) else None


def _why_it_stays(module: Module) -> str:
    if module.uses_of(OWN_STREAMS):
        return "it belongs to the CUDA streams that this file makes, and stays with them"
    for node in module.of_type(ast.Attribute):
        if node.attr in RAW:
            return f"line {module.span(node).line} reads `.{node.attr}`, which only a CUDA stream has"
    return ""


def _device(context: Context, call: ast.Call) -> Iterator[Edit]:
    """A device goes by position; a number means a CUDA device, and elsewhere there is one device."""
    module = context.module
    value = argument(call, 0, "device")
    if value is None or is_constant(value, None):
        return
    span = module.span(value)
    if not call.args:
        yield DropArgument(module.span(call), span)
        yield InsertArgument(module.span(call), "{0}", (span,))
    settled = isinstance(value, ast.IfExp) or is_constant(value, 0) or cuda_device(module, value) is not None
    if not settled and not (isinstance(value, ast.Attribute) and value.attr == "device"):
        yield Replace(span, "{0} if torch.cuda.is_available() else None", (span,))
