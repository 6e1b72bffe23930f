"""`torch.compile(dynamic=True)` raises on a TPU."""

from collections.abc import Iterator

from tpuport.checks.compile_mode import for_inductor, literals, options
from tpuport.draft import Context, Draft
from tpuport.model import Rule


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every `dynamic=True`."""
    for option in options(context.module, "dynamic"):
        if option.certain and True in literals(option.value):
            yield for_inductor(context, rule, option, "False")
