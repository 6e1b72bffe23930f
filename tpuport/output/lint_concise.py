"""Lint findings as lines for people, and for the tools that read `path:line:column: message`."""

from tpuport.engine import Report
from tpuport.model import Safety, Status
from tpuport.output import findings
from tpuport.output.style import Line, Sheet, count, write


def render(report: Report, sheet: Sheet) -> None:
    """Write each finding, each file that was not linted, and a summary."""
    lines = [findings.line(path, finding) for path, finding in report.findings]
    lines += findings.unread(report)
    lines += [[("note", "bold"), (f": {note}", "")] for note in report.notes]
    lines.append(_summary(report))
    write(sheet, lines)


def _summary(report: Report) -> Line:
    shown = report.findings
    checked = len(report.outcomes) - len(report.of(Status.SKIPPED, Status.FAILED))
    rest = [f"{count(checked, 'file')} checked"]
    if failed := report.of(Status.FAILED):
        rest.append(f"{len(failed)} failed")
    if skipped := report.of(Status.SKIPPED):
        rest.append(f"{len(skipped)} skipped")
    if report.hidden:
        rest.append(f"{count(report.hidden, 'finding')} below the severity shown")
    if not shown:
        return [("No findings", "bold" if failed else "bold green"), (f"; {', '.join(rest)}.", "")]
    files = len({path for path, _ in shown})
    safe = sum(finding.fixable and finding.safety is Safety.SAFE for _, finding in shown)
    unsafe = sum(finding.fixable and finding.safety is not Safety.SAFE for _, finding in shown)
    fixes = [f"{safe} fixable with `tpuport migrate` [*]"] if safe else []
    fixes += [f"{unsafe} with `tpuport migrate --unsafe`"] if unsafe else []
    fixable = f" ({', '.join(fixes)})" if fixes else ""
    head = f"{count(len(shown), 'finding')} in {count(files, 'file')}"
    return [(head, "bold"), (f"{fixable}; {', '.join(rest)}.", "")]
