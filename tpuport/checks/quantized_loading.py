"""Weights in 8 or 4 bits, which are unpacked by kernels for CUDA."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import is_constant
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule, Severity

CONFIGURATIONS = {
    f"transformers.{name}" for name in ("BitsAndBytesConfig", "GPTQConfig", "AwqConfig", "EetqConfig", "AqlmConfig")
}
SWITCHES = ("load_in_8bit", "load_in_4bit")


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every such configuration, and for the switches outside of one."""
    module = context.module
    for call in module.of_type(ast.Call):
        if module.callee(call) in CONFIGURATIONS:
            yield Draft(rule, call, Role.BLOCKS)
            continue
        for keyword in call.keywords:
            if keyword.arg in SWITCHES and is_constant(keyword.value, True):
                yield Draft(rule, keyword.value, Role.BLOCKS)
            elif keyword.arg in SWITCHES and not isinstance(keyword.value, ast.Constant):
                reason = "only where it is asked for"
                yield Draft(rule, keyword.value, Role.NEUTRAL, reason=reason, severity=Severity.INFO)
