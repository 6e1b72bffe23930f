"""Reads of a tensor's value in a training step: the host waits for the accelerator each time."""

import ast
from collections.abc import Iterator

from tpuport.analysis.steps import imports_torch, training_loop
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule

READS = ("item", "tolist", "cpu", "numpy")
TESTS = frozenset(
    ("torch.isnan", "torch.isinf", "torch.isfinite", "torch.any", "torch.all", "torch.equal", "torch.allclose")
)


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every read of a value in the body of a step that runs each time."""
    module = context.module
    if not module.calls_by_method.get("backward") or not imports_torch(module):
        return
    for name in READS:
        for call in module.calls_by_method.get(name, []):
            outer = module.parents.get(module.parents[call])
            chained = isinstance(outer, ast.Call) and isinstance(outer.func, ast.Attribute) and outer.func.attr in READS
            if not call.args and not call.keywords and not chained and training_loop(module, call):
                yield Draft(rule, call, Role.NEUTRAL, message=_message(rule, f"`.{name}()`"))
    for branch in module.of_type(ast.If):
        for part in ast.walk(branch.test):
            if isinstance(part, ast.Call) and module.callee(part) in TESTS and training_loop(module, branch):
                message = _message(rule, f"a test of `{module.callee(part)}`")
                yield Draft(rule, part, Role.NEUTRAL, message=message)


def _message(rule: Rule, read: str) -> str:
    return rule.message.replace("a read of a value", read)
