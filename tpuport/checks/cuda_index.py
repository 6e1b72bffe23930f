"""Indexes of packages that hold builds for CUDA."""

import re
from collections.abc import Iterator

from tpuport.checks.cuda_build import TOGETHER, may_move
from tpuport.kinds.document import Document, found
from tpuport.model import Finding, ReplaceText, Rule

_CUDA = re.compile(r"(?<=/whl/)(?:(nightly/|test/)?)cu\d+\b")


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every address of such an index."""
    for address in document.indexes:
        if not _CUDA.search(address.text):
            continue
        raw = document.text.at(address.span)
        edits = (ReplaceText(address.span, _CUDA.sub(r"\1cpu", raw)),) if may_move(document) else ()
        reason = f"builds that a TPU can use are at {_CUDA.sub(chr(92) + '1cpu', address.text)}"
        yield found(rule, address.span, "", reason, edits, chain=TOGETHER if edits else None)
