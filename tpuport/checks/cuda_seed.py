"""`torch.cuda.manual_seed(_all)`: redundant after `torch.manual_seed`, which seeds every accelerator."""

import ast
from collections.abc import Iterator

from tpuport.analysis.module import Module, dotted
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
    seeds_all = "torch.manual_seed" in module.uses_by_name
    for use in module.uses_of((*ANY_SEEDS, *CUDA_SEEDS)):
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
    """Whether the same seed was just set for all devices, with no random draw in between.

    The search goes back through the statements before the call, and before the `if` that it stands in. A call that is
    all its block holds stays, and so do calls that are all a branch of several holds.
    """
    if len(call.args) != 1 or call.keywords or any(isinstance(node, ast.Call) for node in ast.walk(call.args[0])):
        return False
    statement = module.statement(call)
    block = _block(module, statement)
    around = module.parents[statement]
    only_seeds = all(_seeds_cuda(module, other) for other in block)
    if len(block) < 2 or (only_seeds and isinstance(around, ast.If) and around.orelse):
        return False
    while True:
        for earlier in reversed(_until(module, statement)):
            if _sets_same(module, earlier, call):
                return True
            if not _is_harmless(module, earlier):
                return False
        parent = module.parents[statement]
        calls = [node for node in ast.walk(getattr(parent, "test", parent)) if isinstance(node, ast.Call)]
        if not isinstance(parent, ast.If) or not all(_asks(module, node) for node in calls):
            return False
        statement = parent


def _seeds_cuda(module: Module, statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and module.callee(call) in CUDA_SEEDS


def _asks(module: Module, node: ast.Call) -> bool:
    return module.callee(node).endswith(".is_available")


def _block(module: Module, statement: ast.stmt) -> list[ast.stmt]:
    parent = module.parents[statement]
    blocks = (getattr(parent, name, None) or [] for name in ("body", "orelse", "finalbody"))
    return next((block for block in blocks if statement in block), [])


def _until(module: Module, statement: ast.stmt) -> list[ast.stmt]:
    block = _block(module, statement)
    return block[: block.index(statement)]


def _sets_same(module: Module, statement: ast.stmt, call: ast.Call) -> bool:
    other = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(other, ast.Call) or module.callee(other) != "torch.manual_seed":
        return False
    return [*map(ast.dump, other.args)] == [*map(ast.dump, call.args)]


def _is_harmless(module: Module, statement: ast.stmt) -> bool:
    """Whether a statement draws no random number."""
    if isinstance(statement, ast.Global | ast.Nonlocal | ast.Pass):
        return True
    if isinstance(statement, ast.Assign):
        return not any(isinstance(node, ast.Call) for node in ast.walk(statement.value))
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    call = statement.value
    return (module.callee(call) or dotted(call.func)) in HARMLESS_BETWEEN
