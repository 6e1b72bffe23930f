"""Settings that name the NCCL backend."""

from collections.abc import Iterator

from tpuport.kinds.document import Document, Entry, found
from tpuport.model import Finding, Rule

_INSTEAD = "let the code that reads it call `init_process_group()` without a backend, which takes the device's own"


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every setting with that value."""
    for entry in document.entries:
        if entry.is_scalar and not entry.is_item and entry.text.lower() == "nccl":
            yield found(rule, entry.span, f"`{_name(entry)}` is set to NCCL", _INSTEAD)


def _name(entry: Entry) -> str:
    """What is set: in a list of variables, as a manifest has it, the path that leads to it."""
    return ".".join(entry.path[-2:]) if entry.key == "value" else entry.key
