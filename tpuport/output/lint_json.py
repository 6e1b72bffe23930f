"""Lint findings as JSON, version 1: one object, of which `schemas/` says what every field means."""

import json
from typing import TypedDict

from tpuport.engine import Report
from tpuport.model import Status
from tpuport.output import findings
from tpuport.output.style import Sheet

VERSION = 1
"""Goes up when a key changes its meaning or goes away; new keys may come at any time."""


class Ignored(findings.Record):
    """A finding that a comment ignores; `reason` is that of the comment."""


class Stale(TypedDict):
    """An entry of the baseline that nothing matched any more."""

    file: str
    code: str
    scope: str
    """The class or function around the line."""
    line: str
    """Its text."""
    count: int


class Baseline(TypedDict):
    """What the baseline file holds too much."""

    stale: list[Stale]


class Summary(TypedDict):
    """Counts."""

    files: int
    """Files that were looked at."""
    findings: int
    hidden: int
    """Findings below the severity asked for."""
    known: int
    """Findings that the baseline knows."""
    unchanged: int
    """Findings on lines that did not change."""
    ignored: int


class Document(TypedDict):
    """What lint prints."""

    version: int
    findings: list[findings.Record]
    ignored: list[Ignored]
    failures: list[findings.Unread]
    """Files that could not be linted."""
    skipped: list[findings.Unread]
    notes: list[str]
    """Remarks on the run."""
    baseline: Baseline
    summary: Summary


def render(report: Report, sheet: Sheet) -> None:
    """Write one JSON object."""
    content: Document = {
        "version": VERSION,
        "findings": [findings.record(path, finding) for path, finding in report.findings],
        "ignored": [
            {**findings.record(path, finding), "reason": finding.ignored or ""} for path, finding in report.ignored
        ],
        "failures": findings.records(report.of(Status.FAILED)),
        "skipped": findings.records(report.of(Status.SKIPPED)),
        "notes": list(report.notes),
        "baseline": {
            "stale": [
                {
                    "file": entry.file,
                    "code": entry.mark.code,
                    "scope": entry.mark.scope,
                    "line": entry.mark.line,
                    "count": entry.count,
                }
                for entry in report.stale
            ]
        },
        "summary": {
            "files": len(report.outcomes),
            "findings": len(report.findings),
            "hidden": report.hidden,
            "known": report.known,
            "unchanged": report.unchanged,
            "ignored": len(report.ignored),
        },
    }
    sheet.file.write(json.dumps(content, indent=2) + "\n")
