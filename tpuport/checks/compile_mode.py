"""`torch.compile(mode=...)`: the modes of Inductor, which compiles for CUDA and CPU and not for a TPU."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tpuport.analysis.module import Module
from tpuport.checks.choices import arms, is_chosen_by_device, keeping
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule, Severity

COMPILE = "torch.compile"
INDUCTOR_MODES = {"reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"}


@dataclass(frozen=True, slots=True)
class Option:
    """One argument of a call that compiles; `certain` where the call is known to be torch's."""

    call: ast.Call
    name: str
    value: ast.expr
    certain: bool


def options(module: Module, name: str) -> Iterator[Option]:
    """What is passed as `name` to `torch.compile`, to `partial(torch.compile)` and to a module's own `compile`."""
    for call, keyword in module.passed_as(name):
        callee = module.callee(call)
        certain = COMPILE in (callee, module.qualified(call.args[0]) if call.args else "")
        if certain or (not callee and isinstance(call.func, ast.Attribute) and call.func.attr == "compile"):
            yield Option(call, name, keyword.value, certain)


def literals(value: ast.expr) -> set[object]:
    """The literals that the value may be: itself, or the arms of a choice."""
    return {arm.value for arm in arms(value)}


def for_inductor(context: Context, rule: Rule, option: Option, otherwise: str) -> Draft:
    """The option where Inductor compiles, and `otherwise` where it does not."""
    value = option.value
    if isinstance(value, ast.IfExp) and is_chosen_by_device(context, value):
        return Draft(rule, value.body, Role.CUDA_ONLY, severity=Severity.INFO)
    return Draft(rule, option.call, Role.MOVES, (keeping(context, value, otherwise),))


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every mode of Inductor's that is written out."""
    for option in options(context.module, "mode"):
        if literals(option.value) & INDUCTOR_MODES:
            yield for_inductor(context, rule, option, "None")
