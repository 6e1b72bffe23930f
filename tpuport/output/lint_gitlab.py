"""Lint findings as a GitLab code quality report."""

import json
from typing import Any

from tpuport.engine import Report
from tpuport.fingerprint import fingerprints
from tpuport.model import Severity, Status
from tpuport.output.ci import relative
from tpuport.output.findings import placed_sentence
from tpuport.output.style import Sheet

_SEVERITY = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}


def render(report: Report, sheet: Sheet) -> None:
    """Write a JSON list; a file that could not be linted is in it as a blocker."""
    issues: list[dict[str, Any]] = []
    for outcome in report.outcomes:
        file = relative(outcome.path)
        for finding, fingerprint in fingerprints(file, outcome.findings):
            issues.append(
                _issue(
                    f"{finding.code}: {placed_sentence(finding)}",
                    finding.rule,
                    _SEVERITY[finding.severity],
                    fingerprint,
                    file,
                    (finding.span.line, finding.span.end_line),
                )
            )
        if outcome.status is Status.FAILED:
            issues.append(_issue(f"not linted: {outcome.reason}", "failed", "blocker", f"failed {file}", file, (1, 1)))
    sheet.file.write(json.dumps(issues, indent=2) + "\n")


def _issue(
    description: str, check: str, severity: str, fingerprint: str, file: str, lines: tuple[int, int]
) -> dict[str, Any]:
    return {
        "description": description,
        "check_name": f"tpuport/{check}",
        "fingerprint": fingerprint,
        "severity": severity,
        "location": {"path": file, "lines": {"begin": lines[0], "end": lines[1]}},
    }
