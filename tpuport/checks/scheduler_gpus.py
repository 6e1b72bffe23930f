"""Requests for GPUs that a job scheduler reads."""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from tpuport.kinds import commands
from tpuport.kinds.document import Document, Word, found
from tpuport.model import Finding, Rule

_REQUEST = re.compile(
    r"--gres=(?:\S*,)?gpu\b.*|--gpus(?:-per-(?:node|task|socket))?(?:=.*)?|--(?:cpus|mem)-per-gpu(?:=.*)?|.*\bngpus=\d+.*"
    r"|-G\d*|-gpu"
)
_NODES = re.compile(
    r"(?:--partition|--qos|--constraint|-p|-q|-C)(?:=| )\S*(?:gpu|[avh]100|h200|b200|a40|a6000|l40)\S*", re.IGNORECASE
)
_NONE = re.compile(r"--gres=gpu(?::\w+)?:0|--gpus(?:-per-\w+)?[= ]0|-G ?0|.*\bngpus=0\b.*")
_RUNNERS = ("srun", "sbatch", "salloc")
_CONTAINERS = ("docker", "podman", "singularity", "apptainer")
"""What has an option `--gpus` of its own."""

_INSTEAD = "ask for whole hosts with TPUs by their partition, and for no GPUs"


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every request, in a script's directives or on a command line of the scheduler."""
    yield from _requests(rule, document.directives)
    for command in document.commands:
        words = commands.arguments(command)
        if words and words[0].text.rpartition("/")[2] in _RUNNERS:
            own = next((at for at, word in enumerate(words) if word.text in _CONTAINERS), len(words))
            yield from _requests(rule, words[1:own])


def _requests(rule: Rule, words: Sequence[Word]) -> Iterator[Finding]:
    for word, after in zip_longest(words, words[1:]):
        with_value = f"{word.text} {after.text}" if after and not after.text.startswith("-") else word.text
        split = word.text == "--gres" and with_value.startswith("--gres gpu")
        if _NONE.fullmatch(word.text) or _NONE.fullmatch(with_value):
            continue
        if split or _REQUEST.fullmatch(word.text):
            yield found(rule, word.span, f"`{word.text}` asks the scheduler for GPUs", _INSTEAD)
        elif _NODES.fullmatch(word.text) or _NODES.fullmatch(with_value):
            said = word.text if "=" in word.text else with_value
            yield found(rule, word.span, f"`{said}` asks the scheduler for nodes with GPUs", _INSTEAD)
