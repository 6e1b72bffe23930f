"""Optimizers built before their model moves, which a move to a TPU leaves with the old parameters."""

import ast
from collections.abc import Iterator

from tpuport.analysis.module import dotted
from tpuport.checks.tied_parameters import keep_parameters
from tpuport.draft import Context, Draft
from tpuport.model import Rule


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every `torch.optim` call on `model.parameters()` above the first move of `model` in its function."""
    module = context.module
    calls = (call for call in module.of_type(ast.Call) if module.callee(call).startswith("torch.optim."))
    early = (call for call in calls if _moves_later(context, call))
    yield from keep_parameters(context, rule, early, "a move keeps the optimizer's parameters")


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
