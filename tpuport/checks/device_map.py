"""`device_map="auto"`: Accelerate spreads a model over the devices that it knows, and a TPU is none of them."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import is_constant
from tpuport.checks.choices import arms, kept
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule

AUTOMATIC = ("auto", "balanced", "balanced_low_0", "sequential")


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every automatic placement that is written out."""
    module = context.module
    for call in module.of_type(ast.Call):
        for keyword in call.keywords:
            if keyword.arg == "device_map":
                for text in arms(keyword.value):
                    if is_constant(text, *AUTOMATIC):
                        yield _draft(context, rule, call, text)


def _draft(context: Context, rule: Rule, call: ast.Call, text: ast.Constant) -> Draft:
    if context.module.callee(call).partition(".")[0] == "transformers":
        return kept(context, rule, text, "{device.type}")
    return Draft(rule, text, Role.NEUTRAL, reason="place it by hand: `.to(device)`")
