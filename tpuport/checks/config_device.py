"""Settings that name a CUDA device."""

import re
from collections.abc import Iterator

from tpuport.kinds.document import Document, found
from tpuport.model import Finding, Rule

_CUDA = re.compile(r"cuda(:\d+)?")
_INSTEAD = (
    "let the code that reads it take `torch.accelerator.current_accelerator()` where the setting is missing or says "
    "`auto`"
)
_KEY = re.compile(r".*devices?([_-]?(type|name|id))?|map[_-]location|to", re.IGNORECASE)


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every setting whose name says that it is a device and whose value is a CUDA device."""
    for entry in document.entries:
        if entry.is_scalar and not entry.is_item and _CUDA.fullmatch(entry.text) and _KEY.fullmatch(entry.key):
            yield found(rule, entry.span, f"`{entry.key}` is set to a CUDA device", _INSTEAD)
