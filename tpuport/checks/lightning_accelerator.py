"""Lightning's Trainer and Fabric, which know the TPUs of torch_xla and no others."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant, is_unpacked
from tpuport.analysis.frameworks import is_lightning_trainer
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule, Severity

ANSWER = "pass a strategy for the device with an `Accelerator` of your own; `tpuport rules TP460` shows one"
OLD = ("gpus", "tpu_cores", "num_gpus", "distributed_backend")
"""Arguments that Lightning 2 took out."""


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every Trainer and Fabric that leaves the device to Lightning, or asks it for a GPU."""
    module = context.module
    for call in module.of_type(ast.Call):
        if not is_lightning_trainer(module.callee(call)) or is_constant(argument(call, None, "accelerator"), "cpu"):
            continue
        if isinstance(argument(call, None, "strategy"), ast.Call):
            continue  # it may bring its accelerator with it
        value = argument(call, None, "accelerator")
        old = next((k for k in call.keywords if k.arg in OLD and not is_constant(k.value, None, 0)), None)
        if old is not None:
            message = f"`{old.arg}` is gone since Lightning 2"
            yield Draft(rule, old.value, Role.NEUTRAL, message=message, reason=ANSWER)
        elif is_constant(value, "gpu", "cuda"):
            assert value is not None
            yield Draft(rule, value, Role.NEUTRAL, reason=ANSWER)
        elif (value is None and not is_unpacked(call)) or is_constant(value, "auto"):
            message = "Lightning takes the CPU of a TPU host"
            yield Draft(rule, value or call, Role.NEUTRAL, message=message, reason=ANSWER, severity=Severity.WARNING)
        elif isinstance(value, ast.Attribute | ast.Subscript | ast.IfExp):
            message = "Lightning has no name for a TPU of torch_tpu"
            yield Draft(rule, value, Role.NEUTRAL, message=message, reason=ANSWER, severity=Severity.WARNING)
