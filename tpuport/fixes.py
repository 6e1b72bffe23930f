"""Which findings may be fixed, and what fixing them makes of a text: the same for every kind of file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tpuport.model import Finding, Safety


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A migrated text: the findings that were fixed and those that remain, with spans in the old text."""

    text: str
    fixed: tuple[Finding, ...]
    remaining: tuple[Finding, ...]


def applicable(found: Sequence[Finding], unsafe: bool) -> list[Finding]:
    """The findings whose edits may be applied, with their whole chains."""
    held = {f.chain for f in found if f.edits and f.safety is Safety.UNSAFE and not unsafe and f.chain is not None}
    return [
        finding
        for finding in found
        if finding.edits and finding.chain not in held and (unsafe or finding.safety is Safety.SAFE)
    ]


def whole_chains(found: Sequence[Finding], selected: frozenset[str]) -> list[Finding]:
    """The findings of the rules `selected`, without the edits of chains that have a member which has to stay."""
    held = {f.chain: f for f in found if f.edits and f.chain is not None and f.code not in selected}
    held |= {f.chain: f for f in found if f.edits and f.chain is not None and f.ignored is not None}
    return [
        _held_back(finding, held[finding.chain]) if finding.chain in held and finding.edits else finding
        for finding in found
        if finding.code in selected
    ]


def _held_back(finding: Finding, by: Finding) -> Finding:
    reason = "it can only move together with a finding of a rule that is not selected"
    if by.ignored is not None:
        reason = f"it can only move together with line {by.span.line}, which a comment keeps as it is"
    return replace(finding, edits=(), safety=Safety.MANUAL, reason=reason)
