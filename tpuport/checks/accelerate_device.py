"""Accelerate and transformers' Trainer, which have to be told of a TPU before they choose their device."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant
from tpuport.analysis.frameworks import ACCELERATORS, PARSERS, names_training_arguments
from tpuport.checks.tied_parameters import SWAP
from tpuport.draft import Context, Draft, Role
from tpuport.model import InsertBefore, Rule, Severity

VARIABLE = "ACCELERATE_TORCH_DEVICE"
TELL = f"""if torch.accelerator.is_available() and not torch.cuda.is_available():
    os.environ.setdefault(
        "{VARIABLE}", torch.accelerator.current_accelerator().type
    )
    # A move keeps the optimizer's parameters, and those that are tied.
    {SWAP}(True)
"""


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft where a file, or a function of it, makes Accelerate choose: told of the device before, or to be told."""
    module = context.module
    told = {module.function(text) for text in module.of_type(ast.Constant) if text.value == VARIABLE}
    for call in sorted(module.of_type(ast.Call), key=module.span):
        if not _chooses(context, call):
            continue
        function = module.function(call)
        if function in told or None in told:
            message = "Accelerate takes one process on a TPU"
            reason = "it makes no process group there, so that several processes would train apart"
            yield Draft(rule, call, Role.NEUTRAL, message=message, reason=reason, severity=Severity.INFO)
        else:
            told.add(function)
            yield Draft(rule, call, Role.NEUTRAL, (InsertBefore(module.span(module.statement(call)), TELL),))


def _chooses(context: Context, call: ast.Call) -> bool:
    module = context.module
    callee = module.callee(call)
    if callee in PARSERS:
        return any(names_training_arguments(module, node) for node in ast.walk(call))
    if callee in ACCELERATORS:
        return not is_constant(argument(call, None, "cpu"), True)
    return names_training_arguments(module, call.func) and not is_constant(argument(call, None, "use_cpu"), True)
