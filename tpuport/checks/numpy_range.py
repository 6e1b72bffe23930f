"""Ranges of NumPy that leave out all that torch_tpu takes."""

from collections.abc import Iterator

from tpuport import torch_tpu
from tpuport.kinds import packages
from tpuport.kinds.document import Document, found
from tpuport.model import Finding, Rule


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every requirement on NumPy beside one on torch that no release from 2 on meets."""
    wanted = list(packages.wanted(document))
    if not any(one.name in ("torch", "pytorch") for one in wanted):
        return
    for one in wanted:
        if one.name == "numpy" and not packages.admits_any(one.specifier, torch_tpu.NUMPY_RELEASES):
            message = f"`{document.written(one)}` leaves out NumPy 2"
            yield found(
                rule, one.span, message, f"torch_tpu {torch_tpu.VERSION} needs NumPy 2 or newer", severity=one.severity
            )
