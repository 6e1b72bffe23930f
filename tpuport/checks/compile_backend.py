"""`torch.compile(backend=...)`: a TPU has a compiler of its own, which is the default there."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import is_constant
from tpuport.checks.compile_mode import literals, options
from tpuport.draft import Context, Draft, Role
from tpuport.model import DropArgument, Rule, Severity

EAGER = {"eager", "aot_eager", "cudagraphs"}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every backend that is written out: the default one is dropped, the others are told."""
    module = context.module
    for option in options(module, "backend"):
        span = module.span(option.value)
        if is_constant(option.value, "inductor"):
            yield Draft(rule, option.call, Role.MOVES, (DropArgument(module.span(option.call), span),))
        elif "inductor" in literals(option.value):
            yield Draft(rule, option.call, Role.BLOCKS, reason="leave `backend` out where `inductor` would be passed")
        elif isinstance(option.value, ast.Constant) and option.value.value in EAGER:
            message = f"the backend {option.value.value!r} runs on a TPU without compiling for it"
            yield Draft(
                rule,
                option.call,
                Role.NEUTRAL,
                message=message,
                reason="leave `backend` out to compile for the device at hand",
                severity=Severity.INFO,
            )
