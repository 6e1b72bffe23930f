"""Lightning's mixed precision, which is autocast for CUDA wherever it does not run on the CPU."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant
from tpuport.analysis.frameworks import is_lightning_trainer
from tpuport.checks.choices import arms
from tpuport.checks.lightning_accelerator import MIXED, gets_strategy
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every precision that is written out and is another on a TPU."""
    module = context.module
    for call in module.of_type(ast.Call):
        value = argument(call, None, "precision") if is_lightning_trainer(module.callee(call)) else None
        if value is None or is_constant(argument(call, None, "accelerator"), "cpu") or gets_strategy(module, call):
            continue
        for precision in arms(value):
            if is_constant(precision, *MIXED):
                reason = 'on a TPU pass `plugins=[MixedPrecision("bf16-mixed", device=device.type)]` in its place'
                yield Draft(rule, precision, Role.NEUTRAL, reason=reason)
            elif is_constant(precision, "16-true"):
                message = "a TPU computes in bfloat16, not in float16"
                yield Draft(rule, precision, Role.NEUTRAL, message=message, reason='"bf16-true" is its half precision')
