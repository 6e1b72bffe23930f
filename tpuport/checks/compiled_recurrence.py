"""Recurrent layers under `torch.compile`: on a TPU their gradients are lost."""

from collections.abc import Iterator

from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule, Severity

LAYERS = ("torch.nn.LSTM", "torch.nn.GRU")
COMPILERS = ("torch.compile", "torch.nn.Module.compile")


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every such layer: a warning in a file that compiles, else information."""
    module = context.module
    compiles = bool(module.uses_of(COMPILERS))
    for use in module.uses_of(LAYERS):
        if module.call_of(use.node) is not None:
            yield Draft(
                rule,
                use.node,
                Role.NEUTRAL,
                message=rule.message.replace("{name}", use.name),
                severity=None if compiles else Severity.INFO,
                reason="keep it out of what is compiled, with torch.compiler.disable",
            )
