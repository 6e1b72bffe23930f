"""Containers that are given NVIDIA GPUs when they start."""

import re
from collections.abc import Iterator

from tpuport.kinds import commands
from tpuport.kinds.document import Document, found
from tpuport.model import Finding, Rule

_RUN = "on a TPU VM start it with `--privileged --net=host`"
_HANDED = re.compile(r"(?:^|[\s'\"])--(?:gpus\b|runtime[= ]nvidia\b)")
_COMPOSE = "on a TPU VM give the service `privileged: true` and `network_mode: host`"


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every option of `docker run` and every setting of a compose file that hands GPUs over."""
    for command in document.commands:
        names = [word.text.rpartition("/")[2] for word in command.words]
        if "nvidia-docker" in names:
            yield found(rule, command.words[names.index("nvidia-docker")].span, "nvidia-docker needs NVIDIA GPUs", _RUN)
        elif {"docker", "podman"} & set(names) and {"run", "create"} & set(names):
            for option in ("--gpus", "--runtime"):
                given = commands.option(command.words, option)
                if given and (option == "--gpus" or given[1].text == "nvidia"):
                    yield found(rule, given[0].span, f"`{option}` hands over NVIDIA GPUs", _RUN)
    for variable in document.variables:
        if _HANDED.search(variable.value):
            yield found(rule, variable.span, f"`{variable.name}` holds an option that hands over NVIDIA GPUs", _RUN)
    for entry in document.entries:
        if "services" not in entry.path:
            continue
        if entry.key == "runtime" and entry.text == "nvidia":
            yield found(rule, entry.span, "`runtime: nvidia` hands over NVIDIA GPUs", _COMPOSE)
        elif entry.path[-2:] == ("devices", "capabilities") and entry.text == "gpu":
            yield found(rule, entry.span, "the service reserves GPUs", _COMPOSE)
        elif entry.key == "gpus" and len(entry.path) == 3 and not entry.is_item:
            yield found(rule, entry.key_span, "the service is given GPUs", _COMPOSE)
