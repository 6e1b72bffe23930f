"""Packages of PyTorch/XLA that are asked for."""

from collections.abc import Iterator

from tpuport import torch_tpu
from tpuport.kinds import packages
from tpuport.kinds.document import Document, found
from tpuport.model import Finding, Rule

_REASON = f"once the code has moved, `{torch_tpu.INSTALL}` takes its place"


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every such requirement."""
    for one in packages.wanted(document):
        if one.name == "torch-xla":
            yield found(
                rule, one.span, f"`{document.written(one)}` asks for PyTorch/XLA", _REASON, severity=one.severity
            )
