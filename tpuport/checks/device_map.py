"""`device_map="auto"`: Accelerate spreads a model over the devices that it knows, and a TPU is none of them."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import is_constant
from tpuport.analysis.devices import outer
from tpuport.analysis.receivers import receiver
from tpuport.checks.choices import kept
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule

AUTOMATIC = ("auto", "balanced", "balanced_low_0", "sequential")


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every automatic placement that is written out."""
    module = context.module
    for text in module.of_type(ast.Constant):
        if is_constant(text, *AUTOMATIC) and receiver(module, text) == "device_map":
            if _reaches_transformers(context, text):
                yield kept(context, rule, text, "{device.type}")
            else:
                yield Draft(rule, text, Role.NEUTRAL, reason="place it by hand: `.to(device)`")


def _reaches_transformers(context: Context, text: ast.Constant) -> bool:
    """Whether transformers takes the value: in this call, or somewhere in a file that uses it."""
    module = context.module
    parent = module.parents[outer(module, text)]
    call = module.parents[parent] if isinstance(parent, ast.keyword) else None
    if isinstance(call, ast.Call) and module.callee(call):
        return module.callee(call).startswith("transformers.")
    return any(use.name.startswith("transformers.") for use in module.uses)
