"""Ranges and capture for NVIDIA's profilers: `torch.cuda.nvtx`, `torch.cuda.profiler`, `emit_nvtx`."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant, is_unpacked
from tpuport.draft import Context, Draft, Role
from tpuport.mapping import CUDA_THERE, statement_guard
from tpuport.model import Replace, Rule

RANGE = "torch.cuda.nvtx.range"
EMIT = "torch.autograd.profiler.emit_nvtx"
MODULES = ("torch.cuda.nvtx", "torch.cuda.profiler")


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every use: statements go under a test for CUDA, `with` blocks get a portable alternative."""
    for use in context.module.uses:
        if use.name == EMIT:
            if (draft := _emit(context, rule, use.node)) is not None:
                yield draft
        elif use.name.startswith(MODULES):
            draft = _range(context, rule, use.node) if use.name == RANGE else _statement(context, rule, use.node)
            draft.message = rule.message.replace("{name}", use.name)
            yield draft


def _statement(context: Context, rule: Rule, node: ast.expr) -> Draft:
    guard = statement_guard(context, node)
    if guard:
        return Draft(rule, node, Role.CUDA_ONLY, own_guard=guard)
    reason = "`torch.profiler` marks ranges and records on every device; which of the two is wanted has to be decided"
    return Draft(rule, node, Role.BLOCKS, reason=reason)


def _range(context: Context, rule: Rule, node: ast.expr) -> Draft:
    module = context.module
    call = module.call_of(node)
    if call is None or not isinstance(module.parents[call], ast.withitem):
        if call is not None and _is_for_cuda(context, call):
            return Draft(rule, node, Role.CUDA_ONLY)
        return Draft(rule, node, Role.BLOCKS, reason="`torch.profiler.record_function` marks a range on every device")
    if len(call.args) != 1 or call.keywords or is_unpacked(call):
        return Draft(rule, node, Role.BLOCKS, reason="`record_function` takes the finished name, not parts of one")
    span, name = module.span(call), module.span(call.args[0])
    edit = Replace(span, f"{{0}} if {CUDA_THERE} else torch.profiler.record_function({{1}})", (span, name))
    return Draft(rule, node, Role.CUDA_ONLY, own_guard=(edit,))


def _emit(context: Context, rule: Rule, node: ast.expr) -> Draft | None:
    """Switched off, `emit_nvtx` does nothing on any machine."""
    module = context.module
    message = rule.message.replace("{name}", EMIT)
    call = module.call_of(node)
    if call is None or not isinstance(module.parents[call], ast.withitem):
        if call is not None and is_constant(argument(call, 0, "enabled"), False):
            return None
        if call is not None and _is_for_cuda(context, call):
            return Draft(rule, node, Role.CUDA_ONLY, message=message)
        return Draft(rule, node, Role.BLOCKS, message=message, reason="with `enabled=False` it does nothing")
    span, function = module.span(call), module.span(node)
    edit = Replace(span, f"{{0}} if {CUDA_THERE} else {{1}}(enabled=False)", (span, function))
    return Draft(rule, node, Role.CUDA_ONLY, message=message, own_guard=(edit,))


def _is_for_cuda(context: Context, call: ast.Call) -> bool:
    choice = context.module.parents[call]
    return isinstance(choice, ast.IfExp) and choice.body is call and context.guards.tests_availability(choice.test)
