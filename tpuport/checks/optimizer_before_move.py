"""Optimizers whose model moves after they are built, which a move to a TPU leaves with the old parameters."""

import ast
import re
from collections.abc import Iterator

from tpuport.analysis.module import Module, dotted
from tpuport.checks.tied_parameters import keep_parameters
from tpuport.draft import Context, Draft
from tpuport.model import Rule


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every `torch.optim` call on parameters above the first move of what they belong to."""
    module = context.module
    calls = _optimizers(module)
    early = (call for call in calls if _moves_later(context, call) or _moves_from_outside(context, call))
    back = {call for call in module.calls_by_method.get("cpu", ()) if _comes_back(context, call)}
    for draft in keep_parameters(context, rule, [*early, *back], "a move keeps the optimizer's parameters"):
        draft.message = THERE_AND_BACK if draft.node in back else ""
        yield draft


THERE_AND_BACK = "a model goes to the CPU and back, and on a TPU its optimizer would train nothing from then on"


def _comes_back(context: Context, away: ast.Call) -> bool:
    """Whether a model is moved to the CPU, to be saved say, and moves from there in the same function."""
    module = context.module
    name = dotted(_moved(away))
    function = module.function(away)
    if not name or away.args or away.keywords:
        return False
    is_model = isinstance(module.parents[away], ast.Expr) or any(
        isinstance(call.func, ast.Attribute) and (call.func.value is away or dotted(call.func.value) == name)
        for call in module.calls_by_method.get("state_dict", ())
        if module.function(call) is function
    )
    return is_model and any(
        f"{name}.".startswith(f"{dotted(_moved(move))}.")  # the model itself, or the wrapper that it is the module of
        and module.function(move) is function
        and module.span(move) > module.span(away)
        for move in _moves(context)
        if dotted(_moved(move))
    )


def _optimizers(module: Module) -> Iterator[ast.Call]:
    """The calls that make one of torch's optimizers, or whose results are called one."""
    for use in module.uses:
        call = module.call_of(use.node) if use.name.startswith("torch.optim.") else None
        if call is not None and ".lr_scheduler" not in use.name:
            yield call
    for assigned in module.of_type(ast.Assign):
        call = assigned.value if isinstance(assigned.value, ast.Call) else None
        if (
            call is not None
            and any(map(_is_optimizer, assigned.targets))
            and not module.callee(call).startswith("torch.")
        ):
            yield call


def _is_optimizer(target: ast.expr) -> bool:
    """Whether a variable, or an attribute, is called an optimizer."""
    name = target.id if isinstance(target, ast.Name) else getattr(target, "attr", "")
    return "opt" in name.lower() and bool(_OPTIMIZER.search(name) and dotted(target))


_OPTIMIZER = re.compile(r"optimi[sz]er$|optim$|(^|_)opt$", re.IGNORECASE)


def _moves_later(context: Context, call: ast.Call) -> bool:
    """Whether a model whose parameters `call` takes moves below it, and not above, in the same function.

    What an `__init__` does comes before the other methods.
    """
    models = {name for argument in call.args for name in _models(argument)}
    if not context.module.callee(call).startswith("torch."):
        models |= {name for argument in call.args if (name := dotted(argument))}
    if not models:
        return False
    module = context.module
    function = module.function(call)
    moves = [move for move in _moves(context) if dotted(_moved(move)) in models]
    beside = [move for move in moves if module.function(move) is function]
    if beside or function is None or function.name != "__init__":
        return bool(beside) and all(module.span(move) > module.span(call) for move in beside)
    owner = module.parents[function]
    methods = (module.function(move) for move in moves if dotted(_moved(move)).startswith("self."))
    return any(method is not None and module.parents[method] is owner for method in methods)


def _moves(context: Context) -> Iterator[ast.Call]:
    """Calls that move what they are called on."""
    yield from context.module.calls_by_method.get("cuda", ())
    moves = context.module.calls_by_method.get("to", ())
    yield from (move for move in moves if _names_device(context.module.text(move)))


def _moved(move: ast.Call) -> ast.expr:
    assert isinstance(move.func, ast.Attribute)
    return move.func.value


def _moves_from_outside(context: Context, call: ast.Call) -> bool:
    """Whether a `torch.nn.Module` makes an optimizer of its own parts, which only move once it is there.

    In a file that moves nothing, whether the module ever does is not known.
    """
    module = context.module
    function = module.function(call)
    owner = module.parents.get(function) if function is not None else None
    if function is None or not isinstance(owner, ast.ClassDef):
        return False
    is_module = any(module.qualified(base) in ("torch.nn.Module", "torch.nn.modules.Module") for base in owner.bases)
    own = any(model.startswith("self.") or model == "self" for model in _models(function))
    moves = list(_moves(context))
    above = [m for m in moves if module.function(m) is function and module.span(m) < module.span(call)]
    return is_module and own and bool(moves) and all(_is_tensor(context, _moved(move)) for move in above)


def _is_tensor(context: Context, node: ast.expr) -> bool:
    """Whether a value comes from a function of torch, which makes a tensor."""
    while isinstance(node, ast.Call | ast.Attribute):
        if isinstance(node, ast.Call) and (name := context.module.callee(node)).startswith("torch."):
            return not name.startswith("torch.nn.")
        node = node.func if isinstance(node, ast.Call) else node.value
    return False


def _models(argument: ast.AST) -> Iterator[str]:
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
