"""Lint findings counted by rule: as a table for people, and as JSON."""

import json
from collections import Counter
from collections.abc import Iterator

from tpuport.engine import Report
from tpuport.model import Finding, Severity
from tpuport.output import lint_concise
from tpuport.output.lint_json import VERSION
from tpuport.output.style import SEVERITY, Line, Sheet, write


def render_text(report: Report, sheet: Sheet) -> None:
    """Write a line a rule, the most frequent first, and a summary."""
    write(sheet, [*_table(report), *lint_concise.rest(report)])


def render_json(report: Report, sheet: Sheet) -> None:
    """Write one JSON object."""
    rules = [
        {"code": code, "rule": rule, "severity": str(severity), "findings": count, "fixable": fixable}
        for code, rule, severity, count, fixable in _counted(report)
    ]
    sheet.file.write(json.dumps({"version": VERSION, "statistics": rules}, indent=2) + "\n")


def _counted(report: Report) -> Iterator[tuple[str, str, Severity, int, int]]:
    found = [finding for _, finding in report.findings]
    counts = Counter(map(_key, found))
    fixable = Counter(_key(finding) for finding in found if finding.fixable)
    for key in sorted(counts, key=lambda key: (-counts[key], key)):
        yield (*key, counts[key], fixable[key])


def _key(finding: Finding) -> tuple[str, str, Severity]:
    return finding.code, finding.rule, finding.severity


def _table(report: Report) -> Iterator[Line]:
    rows = list(_counted(report))
    width = max((len(str(count)) for *_, count, _ in rows), default=1)
    for code, rule, severity, count, fixable in rows:
        fixes = f" ({fixable} fixable)" if fixable else ""
        yield [(f"{count:>{width}}  ", "bold"), (code, SEVERITY[severity]), (f" {rule}", ""), (fixes, "cyan")]
