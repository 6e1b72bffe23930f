"""A migration's account for people: what is left, where and why; then what was rewritten, by rule."""

from collections import Counter
from collections.abc import Iterator

from tpuport.engine import Report
from tpuport.model import Severity, Status
from tpuport.output import findings
from tpuport.output.style import Line, Sheet, count, write


def render(report: Report, sheet: Sheet) -> None:
    """Write the findings that remain, a table by rule, the files that were not migrated, and a summary."""
    write(sheet, _lines(report))


def _lines(report: Report) -> Iterator[Line]:
    left = [(path, finding) for path, finding in report.findings if finding.severity is not Severity.INFO]
    works = len(report.findings) - len(left)
    if left:
        yield [("Left for you:", "bold")]
        yield from (findings.line(path, finding) for path, finding in left)
        yield []
    fixed = Counter((finding.code, finding.rule) for _, finding in report.fixed)
    remaining = Counter((finding.code, finding.rule) for _, finding in left)
    if fixed or remaining:
        yield from _table(fixed, remaining)
        yield []
    yield from findings.unread(report)
    if works:
        yield [(f"{count(works, 'site')} left alone: {_works(works)} on a TPU.", "")]
    changed = len(report.of(Status.CHANGED))
    verb = "changed" if report.written else "would change"
    head = f"{changed} of {count(len(report.outcomes), 'file')} {verb}"
    yield [
        (head, "bold green" if changed else "bold"),
        (f": {count(fixed.total(), 'site')} rewritten, {remaining.total()} left.", ""),
    ]
    yield from ([("note", "bold"), (f": {note}", "")] for note in report.notes)


def _works(number: int) -> str:
    return "it works as it stands" if number == 1 else "they work as they stand"


def _table(fixed: Counter[tuple[str, str]], remaining: Counter[tuple[str, str]]) -> Iterator[Line]:
    rows = sorted(fixed.keys() | remaining.keys())
    code_width = max(4, *(len(code) for code, _ in rows))
    rule_width = max(4, *(len(rule) for _, rule in rows))
    yield [(f"{'code':<{code_width}}  {'rule':<{rule_width}}  rewritten  left", "bold")]
    for row in rows:
        code, rule = row
        yield [
            (f"{code:<{code_width}}  {rule:<{rule_width}}  ", ""),
            (f"{fixed[row] or '':>9}", "green"),
            (f"  {remaining[row] or '':>4}", "yellow"),
        ]
