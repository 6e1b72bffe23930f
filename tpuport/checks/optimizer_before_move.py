"""Optimizers built before their model moves, which a move to a TPU leaves with the old parameters."""

import ast
from collections.abc import Iterator

from tpuport.analysis.module import dotted
from tpuport.checks.tied_parameters import SWAP, keep_parameters
from tpuport.draft import Context, Draft, Role
from tpuport.model import InsertBefore, Rule, Severity

KEEP = keep_parameters("a move keeps the optimizer's parameters")


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every `torch.optim` call on `model.parameters()` above the first move of `model` in its function."""
    module = context.module
    if any(use.name == SWAP for use in module.uses):
        return
    first = True
    for call in module.of_type(ast.Call):
        if module.callee(call).startswith("torch.optim.") and _moves_later(context, call):
            edits = (InsertBefore(module.span(module.statement(call)), KEEP),) if first else ()
            reason = "" if first else "it is settled with the first one of the file"
            severity = None if first else Severity.INFO
            yield Draft(rule, call, Role.NEUTRAL, edits, reason=reason, severity=severity)
            first = False


def _moves_later(context: Context, call: ast.Call) -> bool:
    """Whether a model whose parameters `call` takes moves below it, and not above, in the same function."""
    models = {name for argument in call.args for name in _models(argument)}
    if not models:
        return False
    module = context.module
    moves = {
        module.span(move) < module.span(call)
        for method in ("cuda", "to")
        for move in module.calls_by_method.get(method, ())
        if isinstance(move.func, ast.Attribute)
        and dotted(move.func.value) in models
        and module.function(move) is module.function(call)
        and (method == "cuda" or _names_device(module.text(move)))
    }
    return moves == {False}


def _models(argument: ast.expr) -> Iterator[str]:
    for node in ast.walk(argument):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("parameters", "named_parameters")
            and (model := dotted(node.func.value))
        ):
            yield model


def _names_device(move: str) -> bool:
    return any(word in move.lower() for word in ("device", "cuda", "gpu", "tpu"))
