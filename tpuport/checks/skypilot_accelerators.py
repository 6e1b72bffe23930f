"""GPUs that a task of SkyPilot asks for."""

import re
from collections.abc import Iterator

from tpuport.kinds.document import Document, found
from tpuport.model import Finding, Rule

_GPU = re.compile(r"(?!tpu)[A-Za-z][\w.-]*(?::[\d.]+\+?)?", re.IGNORECASE)


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every accelerator that is no TPU."""
    for entry in document.entries:
        if entry.path[:1] != ("resources",) or "accelerators" not in entry.path:
            continue
        if entry.key == "accelerators" and entry.is_scalar and _GPU.fullmatch(entry.text):
            yield found(rule, entry.span, f"the task asks for `{entry.text}`")
        elif entry.path[-2] == "accelerators" and not entry.is_item and _GPU.fullmatch(entry.key):
            yield found(rule, entry.key_span, f"the task asks for `{entry.key}`")
