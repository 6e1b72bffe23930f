"""Settings that name the NCCL backend."""

from collections.abc import Iterator

from tpuport.kinds.document import Document, found
from tpuport.model import Finding, Rule


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every setting with that value."""
    for entry in document.entries:
        if entry.is_scalar and not entry.is_item and entry.text.lower() == "nccl":
            yield found(rule, entry.span, f"`{entry.key}` is set to NCCL")
