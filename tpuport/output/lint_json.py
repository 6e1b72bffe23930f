"""Lint findings as JSON, version 1.

One object: `findings` and `ignored` (by comments, with the `reason` given there) are lists of positions with code,
rule, severity, message, and whether and how safely a fix exists; `failures` and `skipped` are files that were not
linted, with why; `notes` are remarks on the run; `baseline` lists entries that nothing matched any more; `summary`
counts.
"""

import json

from tpuport.engine import Report
from tpuport.model import Status
from tpuport.output import findings
from tpuport.output.style import Sheet

VERSION = 1
"""Goes up when a key changes its meaning or goes away; new keys may come at any time."""


def render(report: Report, sheet: Sheet) -> None:
    """Write one JSON object."""
    content = {
        "version": VERSION,
        "findings": [findings.record(path, finding) for path, finding in report.findings],
        "ignored": [{**findings.record(path, finding), "reason": finding.ignored} for path, finding in report.ignored],
        "failures": findings.records(report.of(Status.FAILED)),
        "skipped": findings.records(report.of(Status.SKIPPED)),
        "notes": list(report.notes),
        "baseline": {
            "stale": [{"file": entry.file, **entry.mark._asdict(), "count": entry.count} for entry in report.stale]
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
