"""A migration's account as JSON, version 1."""

import json

from tpuport.engine import Report
from tpuport.model import Status
from tpuport.output import findings
from tpuport.output.style import Sheet

VERSION = 1
"""Goes up when a key changes its meaning or goes away; new keys may come at any time."""


def render(report: Report, sheet: Sheet) -> None:
    """Write one JSON object. `rewritten` gives positions in the old text, `findings` in the text on disk."""
    changed = report.of(Status.CHANGED)
    content = {
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
