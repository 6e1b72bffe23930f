"""`torch.random.fork_rng(device_type="cuda")`: without the type it forks the accelerator's generators."""

from collections.abc import Iterator

from tpuport.analysis.calls import is_constant
from tpuport.draft import Context, Draft, Role
from tpuport.model import DropArgument, Rule

NAME = "torch.random.fork_rng"


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every call that names CUDA."""
    module = context.module
    for call in module.calls_of(NAME):
        for keyword in call.keywords:
            if keyword.arg == "device_type" and is_constant(keyword.value, "cuda"):
                edit = DropArgument(module.span(call), module.span(keyword.value))
                yield Draft(rule, call, Role.MOVES, (edit,))
