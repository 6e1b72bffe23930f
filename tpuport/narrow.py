"""From all that lint found to what it shows: severities as the settings have them, known and old findings left out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from tpuport.baseline import without
from tpuport.model import Finding, Outcome, Severity
from tpuport.source.changes import Changes

RANK = {Severity.INFO: 0, Severity.WARNING: 1, Severity.ERROR: 2}


def rated(outcomes: Iterable[Outcome], severities: Mapping[str, tuple[Severity, Severity]]) -> tuple[Outcome, ...]:
    """Apply severity overrides: by a rule's code, the severity that it has and the one that it is to have.

    A lower one is a ceiling. A higher one is a floor for the rule's ordinary findings: those that stand under a test
    for CUDA, and are lower for it, stay as they are.
    """

    def rate(finding: Finding) -> Finding:
        if finding.code not in severities:
            return finding
        own, wanted = severities[finding.code]
        rank = RANK[finding.severity]
        changes = rank > RANK[wanted] if RANK[wanted] < RANK[own] else RANK[own] <= rank < RANK[wanted]
        return replace(finding, severity=wanted) if changes else finding

    if not severities:
        return tuple(outcomes)
    return tuple(replace(outcome, findings=tuple(map(rate, outcome.findings))) for outcome in outcomes)


def at_least(lowest: Severity, outcomes: Sequence[Outcome]) -> tuple[tuple[Outcome, ...], int]:
    """The outcomes without findings below `lowest`, and how many those were."""
    return _keep(outcomes, lambda _, finding: RANK[finding.severity] >= RANK[lowest])


def changed(changes: Changes, outcomes: Sequence[Outcome]) -> tuple[tuple[Outcome, ...], int]:
    """The outcomes with only findings on lines that changed, and how many others there were."""
    return _keep(outcomes, lambda outcome, finding: changes.touches(outcome.path, finding.span))


def _keep(outcomes: Sequence[Outcome], wanted: Callable[[Outcome, Finding], bool]) -> tuple[tuple[Outcome, ...], int]:
    kept = tuple(
        without(outcome, tuple(finding for finding in outcome.findings if wanted(outcome, finding)))
        for outcome in outcomes
    )
    return kept, sum(len(outcome.findings) for outcome in outcomes) - sum(len(outcome.findings) for outcome in kept)
