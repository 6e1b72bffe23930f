"""`torch.load` to CUDA by a function, or with no `map_location` at all."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant, is_unpacked
from tpuport.draft import Context, Draft, Role
from tpuport.model import Replace, Rule, SetArgument, Severity


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every `torch.load` that may ask for CUDA."""
    module = context.module
    for call in module.of_type(ast.Call):
        if module.callee(call) != "torch.load" or is_unpacked(call):
            continue
        where = argument(call, 1, "map_location")
        if where is None and _other_branch_maps(context, call):
            edit = SetArgument(module.span(call), "map_location", "None if torch.cuda.is_available() else {device}")
            message = "on a TPU this branch would load a checkpoint where it was saved, on CUDA"
            yield Draft(rule, call, Role.MOVES, (edit,), message=message)
        elif where is None:
            reason = "a checkpoint saved from CUDA loads only with map_location= on a machine without it"
            yield Draft(rule, call, Role.NEUTRAL, severity=Severity.INFO, reason=reason)
        elif isinstance(where, ast.IfExp) and is_constant(where.body, None) and context.guards.cuda_tests(where.body):
            if isinstance(where.orelse, ast.Constant):
                reason = "None leaves storages on CUDA, where they were saved from"
                yield Draft(rule, where.body, Role.BLOCKS, severity=Severity.INFO, reason=reason)
            else:
                yield Draft(rule, where.body, Role.CUDA_ONLY)
        elif isinstance(where, ast.Lambda) and (moved := _storage_call(where)) is not None:
            if moved.args or moved.keywords:
                yield Draft(rule, where, Role.BLOCKS, reason="the device that the storage goes to is numbered")
            else:
                yield Draft(rule, where, Role.MOVES, (Replace(module.span(where), "{device}"),))


def _other_branch_maps(context: Context, call: ast.Call) -> bool:
    """Whether the load is chosen by a test for CUDA whose other branch says `map_location`."""
    for child, parent in context.module.ancestors(call):
        if isinstance(parent, ast.If | ast.IfExp) and child is not parent.test:
            branches = [parent.body, parent.orelse]
            other = next(b for b in branches if child is not b and not (isinstance(b, list) and child in b))
            parts = other if isinstance(other, list) else [other]
            maps = any(isinstance(n, ast.keyword) and n.arg == "map_location" for p in parts for n in ast.walk(p))
            if maps and context.guards.cuda_tests(call):
                return True
    return False


def _storage_call(function: ast.Lambda) -> ast.Call | None:
    """The call in `lambda storage, location: storage.cuda(...)`."""
    body = function.body
    if isinstance(body, ast.Call) and isinstance(body.func, ast.Attribute) and body.func.attr == "cuda":
        return body
    return None
