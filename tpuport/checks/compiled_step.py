"""An optimizer whose step is compiled: on a TPU its counters have to lie on the device."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_unpacked
from tpuport.analysis.module import Module
from tpuport.checks.choices import OTHERS
from tpuport.checks.compile_mode import COMPILE
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule, SetArgument

CAPTURABLE = {f"torch.optim.{name}" for name in ("Adam", "AdamW", "NAdam", "RAdam", "Adamax")}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every optimizer with a host counter in a module that compiles a step."""
    module = context.module
    made = module.calls_of(*CAPTURABLE)
    if not made or not _compiles_step(module):
        return
    for call in made:
        if argument(call, None, "capturable") is not None:
            continue
        if is_unpacked(call):
            yield Draft(rule, call, Role.BLOCKS, reason="its arguments are unpacked from a variable")
        else:
            edit = SetArgument(module.span(call), "capturable", OTHERS)
            yield Draft(rule, call, Role.MOVES, (edit,))


def _compiles_step(module: Module) -> bool:
    """Whether a function that calls a `step()` is compiled here, as a whole."""
    compiled = {
        call.args[0].id for call in module.calls_of(COMPILE) if call.args and isinstance(call.args[0], ast.Name)
    }
    for function in module.of_type(ast.FunctionDef):
        decorated = any(_is_compile(module, decorator) for decorator in function.decorator_list)
        if (decorated or function.name in compiled) and _steps(function):
            return True
    return False


def _is_compile(module: Module, decorator: ast.expr) -> bool:
    return module.qualified(decorator.func if isinstance(decorator, ast.Call) else decorator) == COMPILE


def _steps(function: ast.FunctionDef) -> bool:
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "step"
        and not node.args
        for node in ast.walk(function)
    )
