"""`torch.cuda.manual_seed(_all)`: redundant after `torch.manual_seed`, which seeds every accelerator."""

import ast
from collections.abc import Iterator

from tpuport.analysis.module import Module
from tpuport.draft import Context, Draft, Role
from tpuport.model import RemoveStatement, Rule, Severity

CUDA_SEEDS = ("torch.cuda.manual_seed", "torch.cuda.manual_seed_all")
ANY_SEEDS = ("torch.cuda.seed", "torch.cuda.seed_all")
HARMLESS_BETWEEN = {
    "random.seed",
    "numpy.random.seed",
    "torch.manual_seed",
    "torch.use_deterministic_algorithms",
    "print",
    *CUDA_SEEDS,
}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every call: removed where the same seed was just set for all devices, else left as it is."""
    module = context.module
    seeds_all = any(use.name == "torch.manual_seed" for use in module.uses)
    for use in module.uses:
        if use.name in ANY_SEEDS:
            reason = "it does nothing without CUDA; torch.seed() draws a seed for every device, the CPU with them"
            yield Draft(rule, use.node, Role.NEUTRAL, message=f"{use.name} seeds CUDA only", reason=reason)
        if use.name not in CUDA_SEEDS:
            continue
        call = module.call_of(use.node)
        if call is not None and module.is_bare(call) and _is_redundant(module, call):
            edit = RemoveStatement(module.span(module.statement(call)))
            yield Draft(rule, use.node, Role.MOVES, (edit,), message=f"{use.name}() repeats torch.manual_seed()")
        elif seeds_all:
            yield Draft(
                rule,
                use.node,
                Role.NEUTRAL,
                severity=Severity.INFO,
                reason="it does nothing without CUDA, and torch.manual_seed() seeds the accelerator",
            )
        else:
            yield Draft(
                rule, use.node, Role.NEUTRAL, reason="no torch.manual_seed() in this file seeds the accelerator"
            )


def _is_redundant(module: Module, call: ast.Call) -> bool:
    """Whether the statements just before set the same seed for all devices, with no random draw in between."""
    statement = module.statement(call)
    parent = module.parents[statement]
    body = next(
        (b for name in ("body", "orelse", "finalbody") if statement in (b := getattr(parent, name, None) or [])), []
    )
    if len(body) < 2 or len(call.args) != 1 or call.keywords:
        return False
    for earlier in reversed(body[: body.index(statement)]):
        if isinstance(earlier, ast.Assign) and not any(isinstance(n, ast.Call) for n in ast.walk(earlier.value)):
            continue
        if not isinstance(earlier, ast.Expr) or not isinstance(earlier.value, ast.Call):
            return False
        other = earlier.value
        name = module.callee(other) or (other.func.id if isinstance(other.func, ast.Name) else "")
        if name == "torch.manual_seed" and [*map(ast.dump, other.args)] == [*map(ast.dump, call.args)]:
            return not any(isinstance(node, ast.Call) for node in ast.walk(call.args[0]))
        if name not in HARMLESS_BETWEEN:
            return False
    return False
