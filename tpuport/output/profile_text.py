"""The profile report for a terminal."""

from itertools import groupby

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tpuport.output.profile_batches import batch_lines, batches_title
from tpuport.output.profile_headline import failures
from tpuport.output.profile_numbers import number_sentences, numbers_title
from tpuport.output.profile_shared import (
    DEVICE_NAMES,
    change_cells,
    comparison_lists,
    device_note,
    finding_change,
    loss_warning,
    notes,
    process_remarks,
    process_table,
    trace_lines,
)
from tpuport.output.profile_text_chips import chips_and_lines
from tpuport.output.profile_text_gains import executions_by_module, fusion_gains
from tpuport.output.profile_units import NONE, duration, duration_range, number, percent, seconds, size
from tpuport.output.style import count
from tpuport.profile.analyses import Report
from tpuport.profile.analyses.batches import Batches
from tpuport.profile.analyses.graph_breaks import GraphBreaks
from tpuport.profile.analyses.host_syncs import HostSyncs
from tpuport.profile.analyses.inputs import Inputs
from tpuport.profile.analyses.losses import Losses
from tpuport.profile.analyses.modes import ModeRow, Modes, StepTime
from tpuport.profile.analyses.numbers import Numbers
from tpuport.profile.analyses.on_cpu import OnCpu
from tpuport.profile.analyses.processes import Processes
from tpuport.profile.analyses.programs import ProgramRow, Programs
from tpuport.profile.analyses.recompiles import Recompiles
from tpuport.profile.analyses.traces import Traces
from tpuport.profile.comparison import Change, Comparison
from tpuport.profile.figures import Basis, Figure
from tpuport.profile.places import Place
from tpuport.profile.plan import Device, Mode
from tpuport.profile.session import Session

_SHOWN_CHANGES = 6


def render(session: Session, report: Report, console: Console) -> None:
    """Print the report to `console`."""
    parts = [
        _heading(session),
        _failures(report),
        *_measurements(session, report),
        fusion_gains(report),
        *(chips_and_lines(session, report) or [executions_by_module(report)]),
        _batches(report.batches),
        _graph_breaks(report.graph_breaks, report.modes),
        _recompiles(report.recompiles, report.modes),
        _host_syncs(report.host_syncs),
        _inputs(report.inputs),
        _on_cpu(report.on_cpu),
        _notes(report),
        _traces(report.traces),
    ]
    for part in parts:
        if part is not None:
            console.print(part)
            console.print()


def render_comparison(comparison: Comparison, console: Console) -> None:
    """Print what changed between two sessions to `console`."""
    for remark in comparison.remarks:
        console.print(Text(f"- {remark}", style="yellow"))
    if comparison.remarks:
        console.print()
    table = Table(title="Before and after", title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in ("", " ", "before", "after", "change", "basis"):
        table.add_column(name, justify="right" if name in ("before", "after", "change") else "left", no_wrap=True)
    where = ""
    for change in comparison.changes:
        before, after, ratio, basis = change_cells(change)
        table.add_row(
            "" if change.where == where else change.where,
            change.what,
            before,
            after,
            Text(ratio, _better(change)),
            basis,
        )
        where = change.where
    console.print(table)
    for title, findings in comparison_lists(comparison):
        console.print()
        console.print(Text(title, style="bold"))
        for item in findings:
            how = Text(finding_change(item), style="green" if item.after < item.before else "red")
            console.print(Text.assemble("  ", how, "  ", _where(item.place), f"  {item.what}"))
            for line in _source(item.source):
                console.print(line)


def _better(change: Change) -> str:
    """Return the style of a change; a time that was emulated is neither good nor bad."""
    if change.after.basis is Basis.EMULATED or change.ratio is None or round(change.ratio, 2) == 1:
        return "dim"
    return "green" if change.ratio < 1 else "red"


def _measurements(session: Session, report: Report) -> list[RenderableType | None]:
    """Figures; whether the modes compute the same comes first, what they gain last."""
    if not any(row.steps for row in report.modes.rows):
        return []
    return [
        _losses(report.losses),
        _numbers(report.numbers),
        _steps(report.modes, report.programs),
        _processes(report.processes),
        _compilation(report.modes, report.programs),
        _gains(session, report),
    ]


def _heading(session: Session) -> RenderableType:
    plan = session.plan
    script = " ".join((plan.script_as_given, *plan.arguments))
    lines = [Text.assemble(("tpuport profile ", "bold"), script), Text(f"device: {DEVICE_NAMES[plan.device]}")]
    if note := device_note(plan.device):
        lines.append(Text(note, style="dim"))
    return Group(*lines)


def _failures(report: Report) -> RenderableType | None:
    lines: list[RenderableType] = []
    for item in failures(report):
        failure = item.failure
        where = f" at {failure.place}" if failure.place else ""
        lines.append(Text.assemble((f"{item.named} failed", "bold red"), f"{where}: {failure.what}"))
        if failure.hint:
            lines.append(Padding(Text(failure.hint), (0, 0, 0, 2)))
    return Group(*lines) if lines else None


def _losses(losses: Losses) -> RenderableType:
    if losses.reference is None:
        return Text("Losses: none seen (no backward() was called), so the modes' results were not compared.")
    if not losses.rows:
        return Text(f"Losses: only {losses.reference.value} has any, so there is nothing to compare.")
    lines: list[RenderableType] = []
    reference = losses.reference.value
    for row in losses.rows:
        detail = f"largest difference {row.max_absolute:.2g}, relative {row.max_relative:.2g}"
        if row.agrees:
            what = f" agrees with {reference} ({row.compared} compared, {detail})"
            lines.append(Text.assemble("Losses: ", (row.mode.value, "bold"), what))
        else:
            what = f" leaves {reference} at step {row.first_difference} ({row.compared} compared, {detail}): "
            style = "bold yellow" if row.is_comparable else "bold red"
            lines.append(Text.assemble(("Losses DIFFER: ", style), (row.mode.value, "bold"), what, loss_warning(row)))
    return Group(*lines)


def _numbers(numbers: Numbers) -> RenderableType | None:
    if not numbers.checked_steps:
        return None
    lines: list[RenderableType] = [Text(numbers_title(numbers), style="bold")]
    for item in number_sentences(numbers):
        lines.append(
            Text.assemble((item.subject, "bold"), " ", (item.verdict, "bold red" if item.bad else ""), " ", item.detail)
        )
        lines += map(_indented, item.lines)
    return Group(*lines)


def _steps(modes: Modes, programs: Programs) -> RenderableType:
    by_mode = {row.mode: row for row in programs.rows}
    counted = any(row.executions for row in programs.rows)
    basis = _time_basis(modes)
    table = _figures_table(f"A step (times {basis})")
    if counted:
        table.add_column("executions", justify="right", no_wrap=True)
        table.add_column("programs", justify="right", no_wrap=True)
    if any(row.boundary for row in programs.rows):
        table.add_column("boundary", justify="right", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("min – max", justify="right", no_wrap=True)
    table.add_column("steps", justify="right", no_wrap=True)
    for row in modes.rows:
        program = by_mode[row.mode]
        counts = [_number(program.executions), _number(program.distinct)] if counted else []
        if any(row.boundary for row in programs.rows):
            counts.append(Text(size(program.boundary.value) if program.boundary else NONE))
        table.add_row(_mode_cell(row), *counts, *_step_cells(row.step_time))
    return table


def _processes(processes: Processes) -> RenderableType | None:
    if not processes.rows:
        return None
    header, rows = process_table(processes)
    table = Table(
        title="Runs and ranks", title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for name in header:
        table.add_column(name, justify="left" if name in ("mode", "") else "right", no_wrap=bool(name))
    for row in rows:
        table.add_row(*map(Text, row))
    return Group(table, *(Text(line) for line in process_remarks(processes)))


def _compilation(modes: Modes, programs: Programs) -> RenderableType | None:
    compiled = any(row.compiled for row in programs.rows)
    graphs = any(row.graphs for row in programs.rows)
    if not compiled and not graphs:
        return None
    basis = _time_basis(modes)
    table = _figures_table(f"Compilation, in the whole run (times {basis})")
    if compiled:
        table.add_column("programs", justify="right", no_wrap=True)
        table.add_column("compiler", justify="right", no_wrap=True)
    if graphs:
        table.add_column("graphs", justify="right", no_wrap=True)
        table.add_column("torch.compile", justify="right", no_wrap=True)
    for row, program in zip(modes.rows, programs.rows, strict=True):
        cells = [_number(program.compiled), _seconds(program.compile_time)] if compiled else []
        cells += [_number(program.graphs), _seconds(program.dynamo_time)] if graphs else []
        table.add_row(_mode_cell(row), *cells)
    return table


def _figures_table(title: str) -> Table:
    # As wide as its title, which would be broken otherwise.
    table = Table(
        title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0),
        min_width=len(title),
    )  # fmt: skip
    table.add_column("mode", no_wrap=True)
    return table


def _mode_cell(row: ModeRow) -> Text:
    return Text(row.mode.value, style="red" if row.failure else "")


def _time_basis(modes: Modes) -> str:
    return next((row.step_time.median.basis.value for row in modes.rows if row.step_time), Basis.MEASURED.value)


def _step_cells(time: StepTime | None) -> list[Text]:
    if time is None:
        return [Text(NONE), Text(NONE), Text("0")]
    spread = duration_range(time.lowest.value, time.highest.value)
    return [_seconds(time.median), Text(spread), Text(str(time.steps))]


def _number(figure: Figure | None) -> Text:
    return Text(number(figure))


def _seconds(figure: Figure | None) -> Text:
    return Text(seconds(figure))


def _gains(session: Session, report: Report) -> RenderableType | None:
    """Each mode against eager, by what ranks the modes on the device; not for modes that compute something else."""
    differing = {row.mode for row in report.losses.rows if not row.is_comparable}
    failed = {row.mode for row in report.modes.rows if row.failure}
    times = {row.mode: row.step_time for row in report.modes.rows}
    programs = {row.mode: row for row in report.programs.rows}
    if Mode.EAGER not in times or Mode.EAGER in failed:
        return None
    lines: list[RenderableType] = []
    for mode in times:
        if mode is Mode.EAGER or mode in differing | failed:
            continue
        text = _gain(session.plan.device, times[Mode.EAGER], times[mode], programs[Mode.EAGER], programs[mode])
        if text:
            lines.append(Text.assemble((mode.value, "bold"), f": {text}"))
    return Group(Text("Against eager", style="bold"), *lines) if lines else None


def _gain(
    device: Device, eager: StepTime | None, time: StepTime | None, eager_programs: ProgramRow, programs: ProgramRow
) -> str:
    parts: list[str] = []
    before, after = eager_programs.executions, programs.executions
    if before and after and before.value:
        parts.append(f"{before.value:g} → {after.value:g} executions a step ({after.value / before.value - 1:+.0%})")
    if device is not Device.EMULATED_TPU and eager and time and time.median.value:
        parts.append(f"{eager.median.value / time.median.value:.2f}× the speed")
    return ", ".join(parts)


def _batches(batches: Batches) -> RenderableType | None:
    lines = [Text(f"- {line}") for line in batch_lines(batches)]
    return Group(Text(batches_title(batches), style="bold"), *lines) if lines else None


def _graph_breaks(breaks: GraphBreaks, modes: Modes) -> RenderableType | None:
    if not breaks.rows:
        return Text("Graph breaks: none.") if _compiled(modes) else None
    lines: list[RenderableType] = [Text(f"Graph breaks: {len(breaks.rows)}", style="bold")]
    for row in breaks.rows:
        kind = f" ({row.id})" if row.id else ""
        cost = f"  +{row.graphs} graph{'s' * (row.graphs != 1)}"
        lines.append(Text.assemble(_where(row.place), f"  {row.count}×  ", (f"{row.reason}{kind}", "bold"), cost))
        lines += _source(row.source)
        lines.append(_indented(row.plain or row.explanation))
        lines += _remedy(row.edit, row.rule) or [_indented(f"→ {hint}") for hint in row.hints]
    return Group(*lines)


def _source(text: str) -> list[RenderableType]:
    return [Padding(Text(text, style="italic"), (0, 0, 0, 4), expand=False)] if text else []


def _remedy(edit: str, rule: str) -> list[RenderableType]:
    if not edit:
        return []
    return [_indented(f"→ {edit}{f' `tpuport lint` finds it: {rule}.' if rule else ''}")]


def _recompiles(recompiles: Recompiles, modes: Modes) -> RenderableType | None:
    if not recompiles.rows and not recompiles.limits:
        return Text("Recompiles: none.") if _compiled(modes) else None
    lines: list[RenderableType] = [Text(f"Recompiles: {sum(row.count for row in recompiles.rows)}", style="bold")]
    for limit in recompiles.limits:
        lines.append(
            Text.assemble(_where(limit.place), "  ", ("recompile limit reached: runs eagerly from then on", "bold red"))
        )
        lines.append(_indented(limit.reason))
    for row in recompiles.rows:
        lost = f"  {duration(row.seconds.value)} ({row.seconds.basis.value})"
        lines.append(Text.assemble(_where(row.place), f"  {row.count}×  ", (row.cause, "bold"), lost))
        if row.changes:
            more = ", …" if len(row.changes) > _SHOWN_CHANGES else ""
            lines.append(_indented(f"{', '.join(row.changes[:_SHOWN_CHANGES])}{more}"))
        lines += _source(row.source)
        if row.plain:
            lines.append(_indented(row.plain))
        lines += _remedy(row.edit, row.rule)
        if row.buckets:
            sizes = " or ".join(map(str, row.buckets.sizes))
            lines.append(
                _indented(
                    f"→ Padding to {sizes} would save {count(row.buckets.saved, 'compilation')} of the sizes seen, and "
                    f"make {percent(row.buckets.padding)} of the data padding."
                )
            )
    return Group(*lines)


def _host_syncs(syncs: HostSyncs) -> RenderableType | None:
    if not syncs.rows:
        return Text("Host waits in a step: none.") if syncs.counted else None
    lines: list[RenderableType] = [Text(f"Host waits in a step: {len(syncs.rows)}", style="bold")]
    # One remedy stands for all lines in a row that it ends.
    for (edit, rule), rows in groupby(syncs.rows, key=lambda row: (row.edit, row.rule)):
        for row in rows:
            wait = f"  {duration(row.seconds.value)} a step ({row.seconds.basis.value})"
            lines.append(Text.assemble(_where(row.place), f"  {row.count:g}×  ", (row.what, "bold"), wait))
            lines += _source(row.source)
        lines += _remedy(edit, rule)
    return Group(*lines)


def _inputs(inputs: Inputs) -> RenderableType | None:
    """The waits of the mode in which they take most of a step; what is short is not shown."""
    rows = [row for row in inputs.rows if row.edit and row.mode is inputs.rows[0].mode]
    if not rows:
        return None
    lines: list[RenderableType] = [Text(f"Waits for input in a step ({rows[0].mode.value})", style="bold")]
    for row in rows:
        wait = f"{duration(row.seconds.value)} a step ({row.seconds.basis.value}), {percent(row.share)} of it"
        lines.append(Text.assemble(_where(row.place), "  ", (wait, "bold")))
        lines += [*_source(row.source), *_remedy(row.edit, "")]
    return Group(*lines)


def _on_cpu(on_cpu: OnCpu) -> RenderableType | None:
    if not on_cpu.rows:
        return None
    lines: list[RenderableType] = [Text(f"Operations on the CPU in a step: {len(on_cpu.rows)}", style="bold")]
    for (place, source, plain, edit, rule), rows in groupby(
        on_cpu.rows, key=lambda row: (row.place, row.source, row.plain, row.edit, row.rule)
    ):
        lines.append(Text.assemble(_where(place), *((f"  {row.count}×  {row.operation}", "bold") for row in rows)))
        lines += [*_source(source), _indented(plain), *_remedy(edit, rule)]
    return Group(*lines)


def _indented(text: str) -> RenderableType:
    return Padding(Text(text), (0, 0, 0, 4), expand=False)


def _where(place: Place | None) -> Text:
    return Text(NONE if place is None else str(place), style="cyan")


def _compiled(modes: Modes) -> bool:
    return any(row.mode.compiles and row.failure is None for row in modes.rows)


def _notes(report: Report) -> RenderableType | None:
    lines = [Text(f"- {line}") for line in notes(report)]
    return Group(Text("Notes", style="bold"), *lines) if lines else None


def _traces(traces: Traces) -> RenderableType | None:
    lines = [Text(f"- {line}") for line in trace_lines(traces)]
    if traces.command:
        # Never broken, so that it can be copied.
        lines.append(Text(f"  {traces.command}", no_wrap=True, overflow="ignore"))
    return Group(Text("Traces", style="bold"), *lines) if lines else None
