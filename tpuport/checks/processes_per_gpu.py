"""Launchers that are told to start a process for each CUDA device."""

from collections.abc import Iterator

from tpuport.checks.distributed_launcher import launcher
from tpuport.kinds import commands
from tpuport.kinds.document import Document, found
from tpuport.model import Finding, ReplaceText, Rule


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every `--nproc_per_node gpu` of torchrun."""
    for command in document.commands:
        if launcher(command) is None:
            continue
        given = commands.option(command.words, "--nproc_per_node", "--nproc-per-node")
        if given and given[1].text == "gpu":
            raw = document.text.at(given[1].span)
            begin, _, end = raw.rpartition("gpu")
            yield found(rule, given[1].span, edits=(ReplaceText(given[1].span, f"{begin}auto{end}"),))
