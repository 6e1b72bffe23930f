"""What makes a finding the same finding after the code around it has moved."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tpuport.model import Finding

_LONG = 200
"""Longer source lines, as generated code has them, are kept as their beginning and a digest."""


class Mark(NamedTuple):
    """A finding without its place: the rule, the class or function around it, and its source line."""

    code: str
    scope: str
    line: str


def mark(finding: Finding) -> Mark:
    """The mark of `finding`; white space in its line does not count."""
    line = " ".join(finding.line_text.split())
    if len(line) > _LONG:
        line = f"{line[:80]}... sha256:{_digest(line)}"
    return Mark(finding.code, finding.scope, line)


def fingerprints(file: str, findings: Iterable[Finding]) -> Iterator[tuple[Finding, str]]:
    """Each finding of one file with a fingerprint of its own: equal marks are numbered in the order of the file."""
    seen: Counter[Mark] = Counter()
    for finding in findings:
        own = mark(finding)
        yield finding, _digest("\0".join((file, *own, str(seen[own]))))
        seen[own] += 1


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]
