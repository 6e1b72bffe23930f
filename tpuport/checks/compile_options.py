"""`torch.compile(options={...})`: Inductor's options, which a TPU's compiler does not know."""

from collections.abc import Iterator

from tpuport.analysis.calls import is_constant
from tpuport.checks.compile_mode import options
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every call that passes options."""
    for option in options(context.module, "options"):
        if option.certain and not is_constant(option.value, None):
            yield Draft(rule, option.call, Role.NEUTRAL)
