"""Requests for GPUs that a job scheduler reads."""

import re
from collections.abc import Iterator

from tpuport.kinds.document import Document, Word, found
from tpuport.model import Finding, Rule

_REQUEST = re.compile(
    r"--gres=(?:\S*,)?gpu\b.*|--gpus(?:-per-(?:node|task|socket))?(?:=.*)?|--(?:cpus|mem)-per-gpu(?:=.*)?|.*\bngpus=\d+.*"
)
_RUNNERS = ("srun", "sbatch", "salloc")


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every request, in a script's directives or on a command line of the scheduler."""
    words: list[Word] = list(document.directives)
    for command in document.commands:
        if command.words[0].text.rpartition("/")[2] in _RUNNERS:
            words += command.words[1:]
    for number, word in enumerate(words):
        split = word.text == "--gres" and words[number + 1 : number + 2] and words[number + 1].text.startswith("gpu")
        if split or _REQUEST.fullmatch(word.text):
            yield found(rule, word.span, f"`{word.text}` asks the scheduler for GPUs")
