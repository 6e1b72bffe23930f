"""The profile report as Markdown, for the description of a pull request."""

from collections.abc import Iterable, Iterator

from tpuport.output.profile_shared import (
    best_table,
    change_cells,
    chip_remarks,
    chips_note,
    comparison_lists,
    operation_name,
    trace_lines,
)
from tpuport.output.profile_units import NONE, amount, duration, memory, number, percent, seconds, size
from tpuport.profile.analyses import Report
from tpuport.profile.analyses.modes import ModeRow
from tpuport.profile.comparison import Comparison
from tpuport.profile.session import Session

_SHOWN_LINES = 12


def render(session: Session, report: Report) -> str:
    """Return the report."""
    plan = session.plan
    command = _code(" ".join((plan.script_as_given, *plan.arguments)))
    head = f"## tpuport profile `{command}`\n\ndevice: {plan.device.value}"
    parts = (
        head,
        _modes(report),
        _losses(report),
        _chips(report),
        _lines(report),
        _breaks(report),
        _recompiles(report),
        _host_syncs(report),
        _traces(report),
    )
    return "\n\n".join(filter(None, parts)) + "\n"


def render_comparison(comparison: Comparison) -> str:
    """Return what changed between two sessions."""
    rows = ((change.where, change.what, *change_cells(change)) for change in comparison.changes)
    parts = [
        "## tpuport profile: before and after",
        _table(("", "", "before", "after", "change", "basis"), rows),
        *(
            f"**{title}**\n\n" + "\n".join(f"- {_cell(item)}" for item in items)
            for title, items in comparison_lists(comparison)
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _modes(report: Report) -> str:
    basis = next((row.step_time.median.basis.value for row in report.modes.rows if row.step_time), "")
    header = (
        "mode",
        "executions a step",
        "programs",
        f"time a step ({basis})" if basis else "time a step",
        "graphs",
        "",
    )
    programs = {row.mode: row for row in report.programs.rows}
    rows = (
        (
            row.mode.value,
            number(programs[row.mode].executions),
            number(programs[row.mode].distinct),
            seconds(row.step_time.median if row.step_time else None),
            number(programs[row.mode].graphs),
            _outcome(row),
        )
        for row in report.modes.rows
    )
    return _table(header, rows)


def _outcome(row: ModeRow) -> str:
    if row.failure is None:
        return ""
    return f"**failed**{f' at {row.failure.place}' if row.failure.place else ''}: {row.failure.what}"


def _losses(report: Report) -> str:
    if report.losses.reference is None or not report.losses.rows:
        return ""
    reference = report.losses.reference.value
    parts = (
        f"{row.mode.value} agrees with {reference}"
        if row.agrees
        else f"**{row.mode.value} leaves {reference} at step {row.first_difference}**"
        for row in report.losses.rows
    )
    return f"Losses: {', '.join(parts)}."


def _chips(report: Report) -> str:
    if not report.chips.rows:
        return ""
    header = ("chip", "mode", "time a step", "at least", "bound by", "launch", "boundary", "FLOP", "kernels", "memory")
    rows = (
        (
            row.chip,
            row.mode.value,
            duration(row.time.value),
            duration(row.roofline.value),
            row.bound.value,
            duration(row.launch.value),
            size(row.boundary.value),
            amount(row.flops.value),
            f"{row.kernels.value:g}",
            f"{memory(row.peak.value)} of {memory(row.memory.value)}{'' if row.fits else ' **does not fit**'}",
        )
        for row in report.chips.rows
    )
    title = "### On a chip (estimated)"
    remarks = [f"- {_cell(line)}" for row in report.chips.rows for line in chip_remarks(row)]
    return "\n\n".join(filter(None, (title, _table(header, rows), chips_note(report.chips), "\n".join(remarks))))


def _lines(report: Report) -> str:
    table = best_table(report)
    if table is None or not table.rows:
        return ""
    rows = (
        (
            percent(row.share),
            str(row.place) if row.place else NONE,
            f"`{_code(row.source)}`" if row.source else operation_name(row),
            ", ".join(phase.value for phase in row.phases),
        )
        for row in table.rows[:_SHOWN_LINES]
    )
    title = f"### Cost by source line on {table.chip}, {table.mode.value} (estimated)"
    return f"{title}\n\n{_table(('share', 'line', 'source', 'part'), rows)}"


def _breaks(report: Report) -> str:
    if not report.graph_breaks.rows:
        return "### Graph breaks: none" if _compiles(report) else ""
    rows = (
        (
            str(row.place or NONE),
            f"`{_code(row.source)}`" if row.source else "",
            f"{row.plain or row.reason}{f' ({row.id})' if row.id else ''}",
            f"{row.count}",
            f"+{row.graphs}",
            row.edit or " ".join(row.hints),
            row.rule,
        )
        for row in report.graph_breaks.rows
    )
    header = ("line", "source", "what happens", "times", "graphs", "what to do", "lint rule")
    return f"### Graph breaks: {len(report.graph_breaks.rows)}\n\n{_table(header, rows)}"


def _recompiles(report: Report) -> str:
    found = report.recompiles
    if not found.rows and not found.limits:
        return "### Recompiles: none" if _compiles(report) else ""
    rows = (
        (
            str(row.place or NONE),
            f"{row.cause}{': ' + ', '.join(row.changes[:4]) if row.changes else ''}",
            f"{row.count}",
            f"{duration(row.seconds.value)} ({row.seconds.basis.value})",
            row.edit,
            row.rule,
        )
        for row in found.rows
    )
    limits = (
        f"- **{limit.place}: the recompile limit was reached; it runs eagerly from then on**" for limit in found.limits
    )
    table = _table(("line", "cause", "times", "lost", "what to do", "lint rule"), rows)
    title = f"### Recompiles: {sum(row.count for row in found.rows)}"
    return "\n\n".join(filter(None, (title, "\n".join(limits), table)))


def _host_syncs(report: Report) -> str:
    if not report.host_syncs.rows:
        return "### Host waits in a step: none" if report.host_syncs.counted else ""
    rows = (
        (
            str(row.place or NONE),
            f"`{_code(row.source)}`" if row.source else "",
            row.what,
            f"{row.count:g}",
            f"{duration(row.seconds.value)} ({row.seconds.basis.value})",
            row.edit,
            row.rule,
        )
        for row in report.host_syncs.rows
    )
    header = ("line", "source", "how", "times a step", "time a step", "what to do", "lint rule")
    return f"### Host waits in a step: {len(report.host_syncs.rows)}\n\n{_table(header, rows)}"


def _traces(report: Report) -> str:
    lines = [f"- {line}" for line in trace_lines(report.traces)]
    if report.traces.command:
        lines.append(f"- TensorBoard: `{_code(report.traces.command)}`")
    return "\n".join(["### Traces\n", *lines]) if lines else ""


def _compiles(report: Report) -> bool:
    return any(row.mode.compiles and row.failure is None for row in report.modes.rows)


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join(_table_lines(header, rows))


def _table_lines(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"


def _cell(text: str) -> str:
    """Return `text` as it stays inside one cell."""
    return " ".join(text.split()).replace("|", "\\|")


def _code(text: str) -> str:
    """Return `text` as it may stand between single back-quotes."""
    return text.replace("`", "'")
