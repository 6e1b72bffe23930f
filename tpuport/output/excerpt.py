"""A source line with carets under what a finding is about, as wide as it looks on a terminal."""

import unicodedata
from typing import NamedTuple

from tpuport.model import Finding

_WIDTH = 110
"""Columns of source shown; of a longer line, those around the finding."""

_BEFORE = 30
_TAB = 4


class Excerpt(NamedTuple):
    """The line as shown, the column of the first caret, and how many there are."""

    text: str
    column: int
    carets: int


def excerpt(finding: Finding) -> Excerpt | None:
    """The finding's line, or None where it is not known."""
    line, span = finding.line_text, finding.place
    if not line.strip():
        return None
    end = span.end_column if span.end_line == span.line else len(line.rstrip())
    head, marked = _shown(line[: span.column]), _shown(line[span.column : end])
    tail = _shown(line[end:].rstrip())
    indent = len(head) - len(head.lstrip())
    head = head[indent:]
    if _cells(head + marked + tail) > _WIDTH:
        if len(head) > _BEFORE:
            head = "..." + head[-_BEFORE:]
        room = max(_WIDTH - len(head), _BEFORE)
        if len(marked) + len(tail) > room:
            marked, tail = marked[:room], tail[: room - len(marked[:room])] + "..."
    return Excerpt(head + marked + tail, _cells(head), max(_cells(marked), 1))


def _shown(text: str) -> str:
    """`text` with tabs as spaces and characters that a terminal would act on, or not show, as dots."""
    expanded = text.replace("\t", " " * _TAB)
    if expanded.isascii() and expanded.isprintable():
        return expanded
    return "".join("\u00b7" if unicodedata.category(letter) in ("Cc", "Cf") else letter for letter in expanded)


def _cells(text: str) -> int:
    """Columns that `text` takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )
