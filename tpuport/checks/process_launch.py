"""What starts the processes of a distributed run: on a TPU host each has to be told of its chip first."""

from collections.abc import Iterator

from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule

LAUNCHERS = {
    "torch.distributed.launch",
    "torch.distributed.run",
    "torch.distributed.launcher",
    "torch.multiprocessing.spawn",
    "torch.multiprocessing.start_processes",
}
PARTS = tuple(f"{name}." for name in LAUNCHERS)
TELLS = "set_tpu_launch_env"
"""The function of torch_tpu 0.2.0 that sets what the processes need."""


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every launcher, unless the file tells the processes of their chips; the code around it can move."""
    if TELLS in context.module.source:
        return
    for use in context.module.uses:
        if use.name in LAUNCHERS or use.name.startswith(PARTS):
            yield Draft(rule, use.node, Role.NEUTRAL, message=rule.message.replace("{name}", use.name))
