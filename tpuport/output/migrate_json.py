"""A migration's account as JSON, version 1: one object, of which `schemas/` says what every field means."""

import json
from typing import TypedDict

from tpuport.engine import Report
from tpuport.model import Status
from tpuport.output import findings
from tpuport.output.style import Sheet

VERSION = 1
"""Goes up when a key changes its meaning or goes away; new keys may come at any time."""


class Changed(TypedDict):
    """A file that was rewritten."""

    file: str
    rewritten: int
    """Sites."""


class Summary(TypedDict):
    """Counts."""

    files: int
    """Files that were looked at."""
    changed: int
    rewritten: int
    """Sites."""
    left: int
    """Sites."""


class Document(TypedDict):
    """What migrate prints."""

    version: int
    written: bool
    """Whether the files on disk were changed."""
    changed: list[Changed]
    rewritten: list[findings.Record]
    """Sites that were rewritten, at their positions in the old text."""
    findings: list[findings.Record]
    """Sites that are left, at their positions in the text on disk."""
    failures: list[findings.Unread]
    skipped: list[findings.Unread]
    notes: list[str]
    """Remarks on the run."""
    summary: Summary


def render(report: Report, sheet: Sheet) -> None:
    """Write one JSON object."""
    changed = report.of(Status.CHANGED)
    content: Document = {
        "version": VERSION,
        "written": report.written,
        "changed": [{"file": str(outcome.path), "rewritten": len(outcome.fixed)} for outcome in changed],
        "rewritten": [findings.record(path, finding) for path, finding in report.fixed],
        "findings": [findings.record(path, finding) for path, finding in report.findings],
        "failures": findings.records(report.of(Status.FAILED)),
        "skipped": findings.records(report.of(Status.SKIPPED)),
        "notes": list(report.notes),
        "summary": {
            "files": len(report.outcomes),
            "changed": len(changed),
            "rewritten": len(report.fixed),
            "left": len(report.findings),
        },
    }
    sheet.file.write(json.dumps(content, indent=2) + "\n")
