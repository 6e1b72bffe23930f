"""The process group of PyTorch/XLA: `init_process_group("xla")`."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant, is_unpacked
from tpuport.analysis.xla import GROUP
from tpuport.draft import Context, Draft, Role
from tpuport.model import DropArgument, Edit, RemoveStatement, Replace, Rule

METHODS = ("xla://", "pjrt://", "env://")


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every process group that is made over XLA."""
    module = context.module
    for call in module.calls_of(GROUP):
        backend, method = argument(call, 0, "backend"), argument(call, None, "init_method")
        if is_constant(backend, "xla") or is_constant(method, *METHODS[:2]):
            yield _draft(context, rule, call, backend, method)


def _draft(context: Context, rule: Rule, call: ast.Call, backend: ast.expr | None, method: ast.expr | None) -> Draft:
    module, dist = context.module, context.xla.distributed
    if is_unpacked(call) or not is_constant(backend, "xla"):
        return Draft(rule, call, Role.BLOCKS, reason="its backend is not written out")
    assert backend is not None
    if context.xla.launches:
        if context.xla.has_group(call) and module.is_bare(call):
            return Draft(rule, call, Role.MOVES, (RemoveStatement(module.span(module.statement(call))),))
        return Draft(rule, call, Role.BLOCKS, reason="whether the processes are started by then is not known")
    edits: list[Edit] = [Replace(module.span(backend), f"{dist}.get_default_backend_for_device({{device}})")]
    if method is not None and is_constant(method, *METHODS):
        edits.append(DropArgument(module.span(call), module.span(method)))
    elif method is not None:
        return Draft(rule, call, Role.BLOCKS, reason="how the processes meet is not followed")
    return Draft(rule, call, Role.MOVES, tuple(edits))
