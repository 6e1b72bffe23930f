"""Lint findings for people: each with its source line and carets under what it is about."""

from collections.abc import Iterator
from pathlib import Path

from tpuport.engine import Report
from tpuport.model import Finding
from tpuport.output import findings, lint_concise
from tpuport.output.excerpt import excerpt
from tpuport.output.style import SEVERITY, Line, Sheet, write


def render(report: Report, sheet: Sheet) -> None:
    """Write each finding, each file that was not linted, and a summary."""
    lines = [line for path, finding in report.findings for line in _finding(path, finding)]
    write(sheet, [*lines, *lint_concise.rest(report)])


def _finding(path: Path, finding: Finding) -> Iterator[Line]:
    yield findings.line(path, finding)
    shown = excerpt(finding)
    if shown is None:
        return
    number = str(finding.place.line)
    yield [(f"{number:>5} | ", "dim"), (shown.text, "")]
    yield [(f"{'':>5} | ", "dim"), (" " * shown.column, ""), ("^" * shown.carets, SEVERITY[finding.severity])]
