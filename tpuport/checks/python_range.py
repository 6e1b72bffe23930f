"""Ranges of Python that leave out all that torch_tpu takes."""

import re
from collections.abc import Iterator

from tpuport import torch_tpu
from tpuport.kinds import packages
from tpuport.kinds.document import Document, found
from tpuport.model import Finding, Rule

_IMAGE = re.compile(r"(?:^|/)python:(3\.\d+)\b")


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every range without a fitting release, and for images of an older Python."""
    reason = f"torch_tpu {torch_tpu.VERSION} needs Python {torch_tpu.PYTHON_RELEASES[0]} or newer"
    for one in document.interpreters:
        if not packages.admits_any(one.text, torch_tpu.PYTHON_RELEASES):
            written = document.text.at(one.span).strip("\"'")
            yield found(rule, one.span, f"Python is held at `{written}`, too old for a TPU", reason)
    for image in document.images:
        named = _IMAGE.search(image.reference)
        if named and not packages.admits_any(f"=={named[1]}", torch_tpu.PYTHON_RELEASES):
            yield found(rule, image.span, f"Python {named[1]} is too old for a TPU", reason)
