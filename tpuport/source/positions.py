"""Where places in an old text lie in the new one."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from tpuport.model import Finding, Span

NAMED_LINE = re.compile(r"(?<=\bline )\d+\b")


def renumbered(text: str, line: Callable[[int], int]) -> str:
    """A finding's text with each line of its own file that it names as "line 12" put through `line`."""
    return NAMED_LINE.sub(lambda match: str(line(int(match[0]))), text)


def moved(findings: Sequence[Finding], old: str, new: str) -> tuple[Finding, ...]:
    """`findings` of `old` with the lines that they have in `new`, as have those that their texts name.

    Columns hold only on lines that did not change. Those of a notebook are moved by `tpuport.kinds.notebook`.
    """
    blocks = SequenceMatcher(None, old.split("\n"), new.split("\n"), autojunk=False).get_opcodes()

    def line(number: int) -> int:
        for _, start, stop, new_start, new_stop in blocks:
            if start < number <= stop:
                return min(number - start + new_start, max(new_stop, 1))
        return number

    def span(at: Span) -> Span:
        return at._replace(line=line(at.line), end_line=line(at.end_line))

    return tuple(
        replace(
            finding,
            span=span(finding.span),
            message=renumbered(finding.message, line),
            reason=renumbered(finding.reason, line),
        )
        for finding in findings
    )
