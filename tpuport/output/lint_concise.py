"""Lint findings a line each, for the tools that read `path:line:column: message`."""

from collections.abc import Iterator

from tpuport.baseline import Entry
from tpuport.engine import Report
from tpuport.model import Safety, Status
from tpuport.output import findings
from tpuport.output.style import Line, Sheet, count, write

_STALE_SHOWN = 10


def render(report: Report, sheet: Sheet) -> None:
    """Write each finding, each file that was not linted, and a summary."""
    write(sheet, [*(findings.line(path, finding) for path, finding in report.findings), *rest(report)])


def rest(report: Report) -> Iterator[Line]:
    """What comes after the findings: files that were not linted, stale entries, notes, and the summary."""
    yield from findings.unread(report)
    yield from _stale(report)
    yield from ([("note", "bold"), (f": {note}", "")] for note in report.notes)
    yield summary(report)


def _stale(report: Report) -> Iterator[Line]:
    if not report.stale:
        return
    total = sum(entry.count for entry in report.stale)
    are = "is" if total == 1 else "are"
    yield [("note", "bold"), (f": {count(total, 'finding')} of the baseline {are} fixed; --write-baseline drops:", "")]
    yield from ([(f"  {_entry(entry)}", "dim")] for entry in report.stale[:_STALE_SHOWN])
    if len(report.stale) > _STALE_SHOWN:
        yield [(f"  and {len(report.stale) - _STALE_SHOWN} more", "dim")]


def _entry(entry: Entry) -> str:
    times = f" ({entry.count} times)" if entry.count > 1 else ""
    return f"{entry.file}: {entry.mark.code} {entry.mark.line}{times}"


def summary(report: Report) -> Line:
    """One line that counts the findings and says of what."""
    shown = report.findings
    checked = len(report.outcomes) - len(report.of(Status.SKIPPED, Status.FAILED))
    parts = [f"{count(checked, 'file')} checked"]
    if failed := report.of(Status.FAILED):
        parts.append(f"{len(failed)} failed")
    if skipped := report.of(Status.SKIPPED):
        parts.append(f"{len(skipped)} skipped")
    if report.hidden:
        parts.append(f"{count(report.hidden, 'finding')} below the severity shown")
    if report.known:
        parts.append(f"{report.known} in the baseline")
    if report.unchanged:
        parts.append(f"{report.unchanged} on unchanged lines")
    if report.ignored:
        parts.append(f"{len(report.ignored)} ignored by comments")
    if not shown:
        return [("No findings", "bold" if failed else "bold green"), (f"; {', '.join(parts)}.", "")]
    files = len({path for path, _ in shown})
    safe = sum(finding.fixable and finding.safety is Safety.SAFE for _, finding in shown)
    unsafe = sum(finding.fixable and finding.safety is not Safety.SAFE for _, finding in shown)
    fixes = [f"{safe} fixable with `tpuport migrate` [*]"] if safe else []
    fixes += [f"{unsafe} with `tpuport migrate --unsafe`"] if unsafe else []
    fixable = f" ({', '.join(fixes)})" if fixes else ""
    head = f"{count(len(shown), 'finding')} in {count(files, 'file')}"
    return [(head, "bold"), (f"{fixable}; {', '.join(parts)}.", "")]
