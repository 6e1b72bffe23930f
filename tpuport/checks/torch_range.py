"""Ranges of torch that leave out all that torch_tpu takes."""

from collections.abc import Iterator

from tpuport import torch_tpu
from tpuport.kinds import packages
from tpuport.kinds.document import Document, found
from tpuport.model import Finding, Rule

_NAMES = ("torch", "pytorch", "pytorch-gpu")


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every requirement on torch that no fitting release meets."""
    for one in packages.wanted(document):
        if one.name in _NAMES and not packages.admits_any(one.specifier, torch_tpu.TORCH_RELEASES, torch_tpu.TORCH):
            oldest, newest = torch_tpu.TORCH_RELEASES[0], torch_tpu.TORCH_RELEASES[-1]
            message = f"`{document.written(one)}` leaves out every torch that torch_tpu {torch_tpu.VERSION} takes"
            yield found(
                rule, one.span, message, f"let it admit a release from {oldest} to {newest}", severity=one.severity
            )
