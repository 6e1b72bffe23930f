"""The profile report as Markdown, for the description of a pull request."""

import html
import re
from collections.abc import Iterable, Iterator

from tpuport.output.profile_batches import batch_lines, batches_title
from tpuport.output.profile_headline import compiles, failures, headline
from tpuport.output.profile_numbers import number_sentences, numbers_title
from tpuport.output.profile_shared import (
    DEVICE_NAMES,
    best_fusion,
    best_table,
    change_cells,
    chip_remarks,
    chips_note,
    comparison_lists,
    device_note,
    finding_change,
    first_chip,
    fusion_title,
    module_amount,
    module_name,
    module_rows,
    notes,
    operation_name,
    process_remarks,
    process_table,
    rest,
    trace_lines,
)
from tpuport.output.profile_units import NONE, amount, duration, memory, number, percent, plain, seconds, size
from tpuport.profile.analyses import Report
from tpuport.profile.analyses.modes import ModeRow
from tpuport.profile.analyses.programs import ProgramRow
from tpuport.profile.comparison import Comparison, Finding
from tpuport.profile.session import Session

_SHOWN_LINES = 12
_SHOWN_MODULES = 8
_CODE_OR_TAG = re.compile(r"`[^`]*`|<")


def render(session: Session, report: Report) -> str:
    """Return the report."""
    plan = session.plan
    command = _code(" ".join((plan.script_as_given, *plan.arguments)))
    note = device_note(plan.device)
    head = f"## tpuport profile `{command}`\n\ndevice: {DEVICE_NAMES[plan.device]}{f'. {note}' if note else ''}"
    parts = (
        head,
        _failures(report),
        _headline(session, report),
        _modes(report),
        _processes(report),
        _losses(report),
        _numbers(report),
        _fusion(report),
        _chips(report),
        _module_costs(report),
        _lines(report),
        _batches(report),
        _breaks(report),
        _recompiles(report),
        _host_syncs(report),
        _inputs(report),
        _on_cpu(report),
        _notes(report),
        _traces(report),
    )
    return "\n\n".join(filter(None, parts)) + "\n"


def render_comparison(comparison: Comparison) -> str:
    """Return what changed between two sessions."""
    rows = ((change.where, change.what, *change_cells(change)) for change in comparison.changes)
    parts = [
        "## tpuport profile: before and after",
        "\n".join(f"- **{_cell(remark)}**" for remark in comparison.remarks),
        *(_changed(title, findings) for title, findings in comparison_lists(comparison)),
        _table(("", "", "before", "after", "change", "basis"), rows),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _changed(title: str, findings: list[Finding]) -> str:
    lines = (
        (
            f"- {finding_change(item)}: {item.place or NONE}",
            f"`{_code(item.source)}`" if item.source else "",
            _cell(item.what),
        )
        for item in findings
    )
    shown = "\n".join(" ".join(filter(None, parts)) for parts in lines)
    return "\n\n".join(filter(None, (f"**{title}**", shown)))


def _failures(report: Report) -> str:
    lines: list[str] = []
    for item in failures(report):
        where = f" at {item.failure.place}" if item.failure.place else ""
        hint = f" {item.failure.hint}" if item.failure.hint else ""
        lines.append(f"- **{item.named} failed**{where}: {_cell(item.failure.what)}{hint}")
    return "\n".join(lines)


def _headline(session: Session, report: Report) -> str:
    facts = headline(report, session.plan.device)
    if not facts:
        return ""
    values = tuple(f"**{fact.value}**{' ⚠️' if fact.bad else ''}" for fact in facts)
    return _table(tuple(fact.title for fact in facts), (values, tuple(fact.detail for fact in facts)))


def _modes(report: Report) -> str:
    if not any(row.steps for row in report.modes.rows):
        return ""
    basis = next((row.step_time.median.basis.value for row in report.modes.rows if row.step_time), "")
    header = (
        "mode",
        "executions a step",
        "programs",
        "boundary a step",
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
            _boundary(programs[row.mode]),
            seconds(row.step_time.median if row.step_time else None),
            number(programs[row.mode].graphs),
            _outcome(row),
        )
        for row in report.modes.rows
    )
    return _table(header, rows)


def _processes(report: Report) -> str:
    if not report.processes.rows:
        return ""
    remarks = "".join(f"\n- {_cell(line)}" for line in process_remarks(report.processes))
    return f"### Runs and ranks\n\n{_table(*process_table(report.processes))}" + (f"\n{remarks}" if remarks else "")


def _boundary(row: ProgramRow) -> str:
    return size(row.boundary.value) if row.boundary else NONE


def _outcome(row: ModeRow) -> str:
    return "" if row.failure is None else "**failed**"


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


def _numbers(report: Report) -> str:
    if not report.numbers.checked_steps:
        return ""
    lines = [f"### {numbers_title(report.numbers)}", ""]
    for item in number_sentences(report.numbers):
        verdict = f"**{item.verdict}**" if item.bad else item.verdict
        lines.append(f"- {item.subject} {verdict} {_cell(item.detail)}")
        lines += [f"  - {_cell(line)}" for line in item.lines]
    return "\n".join(lines)


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
    remarks = [f"- {_cell(line)}" for line in chip_remarks(report.chips.rows)]
    reading = "\n\n".join(filter(None, (chips_note(report.chips), "\n".join(remarks))))
    parts = ("### On a chip (estimated)", _table(header, rows), _folded("How to read these estimates", reading))
    return "\n\n".join(parts)


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
    title = f"Cost by source line on {table.chip}, {table.mode.value} (estimated)"
    return _folded(title, _table(("share", "line", "source", "part"), rows))


def _inputs(report: Report) -> str:
    waits = [row for row in report.inputs.rows if row.edit]
    rows = (
        (str(row.place or NONE), row.mode.value, f"{duration(row.seconds.value)} ({row.seconds.basis.value})",
         percent(row.share), row.edit)
        for row in waits
    )  # fmt: skip
    header = ("line", "mode", "time a step", "of the step", "what to do")
    return f"### Waits for input\n\n{_table(header, rows)}" if waits else ""


def _on_cpu(report: Report) -> str:
    found = report.on_cpu.rows
    rows = ((str(row.place or NONE), f"`{row.operation}`", f"{row.count}", row.plain, row.edit) for row in found)
    header = ("line", "operation", "times a step", "what happens", "what to do")
    return f"### Operations on the CPU in a step: {len(found)}\n\n{_table(header, rows)}" if found else ""


def _fusion(report: Report) -> str:
    row = best_fusion(report)
    if row is None:
        return ""
    rows = (
        (module_name(item.module), plain(item.saving.before.value), plain(item.saving.after.value))
        for item in row.modules[:_SHOWN_MODULES]
    )
    more = rest(row.modules, _SHOWN_MODULES)
    parts = (f"### {fusion_title(row)}", _table(("module", "eager", row.mode.value), rows), more)
    return "\n\n".join(filter(None, parts))


def _module_costs(report: Report) -> str:
    tables = first_chip(report)
    if not tables:
        return ""
    found = module_rows(tables)
    rows = (
        (name, *(NONE if row is None else module_amount(row) for row in rows)) for name, rows in found[:_SHOWN_MODULES]
    )
    title = f"### Cost by module on {tables[0].chip} (estimated share of a step's cycles)"
    header = ("module", *(table.mode.value for table in tables))
    return "\n\n".join(filter(None, (title, _table(header, rows), rest(found, _SHOWN_MODULES))))


def _batches(report: Report) -> str:
    lines = "\n".join(f"- {_cell(line)}" for line in batch_lines(report.batches))
    return f"### {_cell(batches_title(report.batches))}\n\n{lines}" if lines else ""


def _breaks(report: Report) -> str:
    if not report.graph_breaks.rows:
        return "### Graph breaks: none" if compiles(report) else ""
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
        return "### Recompiles: none" if compiles(report) else ""
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


def _notes(report: Report) -> str:
    lines = [f"- {_cell(line)}" for line in notes(report)]
    return _folded(f"Notes: {len(lines)}", "\n".join(lines)) if lines else ""


def _traces(report: Report) -> str:
    lines = [f"- {line}" for line in trace_lines(report.traces)]
    if report.traces.command:
        lines.append(f"- TensorBoard: `{_code(report.traces.command)}`")
    return _folded("Traces", "\n".join(lines)) if lines else ""


def _folded(summary: str, body: str) -> str:
    """Return what opens with a click; the empty lines let GitHub read the body as Markdown."""
    return f"<details><summary>{html.escape(summary)}</summary>\n\n{body}\n\n</details>"


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join(_table_lines(header, rows))


def _table_lines(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"


def _cell(text: str) -> str:
    """Return `text` as it stays inside one cell, where only back-quotes mark it up: a `<` would begin a tag."""
    line = " ".join(text.split()).replace("|", "\\|")
    return _CODE_OR_TAG.sub(lambda found: "&lt;" if found[0] == "<" else found[0], line)


def _code(text: str) -> str:
    """Return `text` as it may stand between single back-quotes."""
    return text.replace("`", "'")
