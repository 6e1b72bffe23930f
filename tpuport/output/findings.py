"""What the formats of lint and migrate share: a finding as a line, and as a JSON record."""

from pathlib import Path
from typing import TypedDict

from tpuport.engine import Report
from tpuport.model import Finding, Outcome, Safety, Status
from tpuport.output.style import SEVERITY, Line


class Record(TypedDict):
    """A finding; lines and columns count from 1, and the end is exclusive."""

    file: str
    cell: int | None
    """In a notebook, the cell in which lines count: all cells count, from 1. Null for other files."""
    line: int
    column: int
    end_line: int
    end_column: int
    code: str
    rule: str
    """Name of the rule."""
    severity: str
    message: str
    fixable: bool
    safety: str
    """`safe`, `unsafe` or `manual`."""
    reason: str
    """Why there is no fix."""


class Unread(TypedDict):
    """A file that was skipped, or failed."""

    file: str
    reason: str


def line(path: Path, finding: Finding) -> Line:
    """`path:line:column: CODE message: reason [*]`; in a notebook `path:cell N:line:column`."""
    pieces = [
        (str(path), "bold"),
        (f":{place(finding)}: ", "dim"),
        (finding.code, SEVERITY[finding.severity]),
        (f" {finding.message}", ""),
    ]
    if finding.reason:
        pieces.append((f": {finding.reason}", "italic"))
    if finding.fixable:
        pieces.append((" [*]" if finding.safety is Safety.SAFE else " [unsafe]", "cyan"))
    return pieces


def place(finding: Finding) -> str:
    """`line:column`, both from 1; in a notebook `cell N:line:column`, within the cell."""
    at = f"{finding.place.line}:{finding.place.column + 1}"
    return at if finding.cell is None else f"cell {finding.cell.number}:{at}"


def line_of(finding: Finding) -> str:
    """The line, from 1; in a notebook with its cell."""
    return f"cell {finding.cell.number}:{finding.place.line}" if finding.cell else str(finding.span.line)


def sentence(finding: Finding) -> str:
    """The message, with the reason why there is no fix where there is one."""
    return f"{finding.message}: {finding.reason}" if finding.reason else finding.message


def placed_sentence(finding: Finding) -> str:
    """The sentence for formats that know places of files only: in a notebook it tells the cell."""
    cell = finding.cell
    return f"cell {cell.number}, line {cell.span.line}: {sentence(finding)}" if cell else sentence(finding)


def unread(report: Report) -> list[Line]:
    """One line for each file that was skipped or failed."""
    styles = {Status.SKIPPED: "yellow", Status.FAILED: "bold red"}
    return [
        [(str(outcome.path), "bold"), (f": {outcome.status}", styles[outcome.status]), (f": {outcome.reason}", "")]
        for outcome in report.of(Status.SKIPPED, Status.FAILED)
    ]


def record(path: Path, finding: Finding) -> Record:
    """The JSON form of a finding."""
    return {
        "file": str(path),
        "cell": finding.cell.number if finding.cell else None,
        "line": finding.place.line,
        "column": finding.place.column + 1,
        "end_line": finding.place.end_line,
        "end_column": finding.place.end_column + 1,
        "code": finding.code,
        "rule": finding.rule,
        "severity": str(finding.severity),
        "message": finding.message,
        "fixable": finding.fixable,
        "safety": str(finding.safety),
        "reason": finding.reason,
    }


def records(outcomes: tuple[Outcome, ...]) -> list[Unread]:
    """The JSON form of skipped or failed files."""
    return [{"file": str(outcome.path), "reason": outcome.reason} for outcome in outcomes]
