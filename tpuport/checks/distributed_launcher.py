"""Launchers of torch.distributed, which start a process for each GPU."""

from collections.abc import Iterator
from itertools import pairwise

from tpuport.kinds import commands
from tpuport.kinds.document import Command, Document, Word, found
from tpuport.model import Finding, Rule

_MODULES = ("torch.distributed.launch", "torch.distributed.run", "torch.distributed.elastic.multiprocessing")
_ONLY_NAME = ("which", "command", "type", "hash", "echo", "printf", "grep", "pgrep", "pkill", "killall", "man")
"""Programs that are told a launcher's name, and do not run it."""

_FIRST = "on a TPU host run `eval \"$(python -m torch.tpu.distributed | sed 's/^/export /')\"` before it"

_ACCELERATE = (
    "Accelerate makes no process group on a TPU: start the script with `python` there, as several processes would each "
    "train apart"
)


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every call of a launcher."""
    for command in document.commands:
        program = launcher(command)
        if launches_accelerate(command):
            message = "`accelerate launch` starts its processes for GPUs"
            yield found(rule, commands.arguments(command)[0].span, message, _ACCELERATE)
            continue
        first = commands.arguments(command)[:1]
        if first and first[0].text.rpartition("/")[2] == "deepspeed":
            message = "`deepspeed` starts a process for each NVIDIA GPU"
            yield found(rule, first[0].span, message, f"on a TPU `torchrun` does: {_FIRST}")
        elif program is not None:
            name = program.text.rpartition("/")[2]
            message = f"`{name}` starts processes that each need to know their TPU"
            yield found(rule, program.span, message, f"{_FIRST}, and start one process for each of its chips")


def launcher(command: Command) -> Word | None:
    """The word that names a launcher of torch.distributed, if the command is a call of one."""
    before = ""
    first = commands.arguments(command)[:1]
    if first and first[0].text in _ONLY_NAME:
        return None
    for word in command.words:
        if word.text.rpartition("/")[2] == "torchrun":
            return word
        if word.text in _MODULES and before == "-m":
            return word
        before = word.text
    return None


def launches_accelerate(command: Command) -> bool:
    """Whether the command is a call of `accelerate launch` that is not for the CPU."""
    texts = [word.text for word in commands.arguments(command)]
    called = texts[:2] == ["accelerate", "launch"] or ("-m", "accelerate.commands.launch") in pairwise(texts)
    return called and "--cpu" not in texts and "--use_cpu" not in texts
