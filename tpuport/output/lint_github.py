"""Lint findings as GitHub workflow commands, which annotate the lines of a pull request."""

from pathlib import Path

from tpuport.engine import Report
from tpuport.model import Finding, Severity, Status
from tpuport.output.ci import relative
from tpuport.output.findings import placed_sentence
from tpuport.output.style import Sheet

_COMMAND = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(report: Report, sheet: Sheet) -> None:
    """Write one command for each finding and each file that could not be linted."""
    for path, finding in report.findings:
        sheet.file.write(_command(path, finding) + "\n")
    for outcome in report.of(Status.FAILED):
        file = _property(relative(outcome.path))
        place = f"file={file},line={outcome.line}" if outcome.line else f"file={file}"
        sheet.file.write(f"::error {place},title=tpuport::{_data(outcome.reason)}\n")
    for note in report.notes:
        sheet.file.write(f"::notice title=tpuport::{_data(note)}\n")


def _command(path: Path, finding: Finding) -> str:
    span = finding.span
    place = {"file": relative(path), "line": span.line, "endLine": span.end_line}
    if span.line == span.end_line:  # columns hold only for annotations of one line
        place |= {"col": span.column + 1, "endColumn": span.end_column + 1}
    place["title"] = f"{finding.code} {finding.rule}"
    where = ",".join(f"{key}={_property(str(value))}" for key, value in place.items())
    return f"::{_COMMAND[finding.severity]} {where}::{_data(f'{finding.code} {placed_sentence(finding)}')}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
