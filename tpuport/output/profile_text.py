"""The profile report for a terminal."""

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from tpuport.output.profile_batches import batch_lines, batches_title
from tpuport.output.profile_findings import Section, finding_sections, rule_note
from tpuport.output.profile_headline import failures
from tpuport.output.profile_numbers import loss_sentences, losses_unknown, number_sentences, numbers_title
from tpuport.output.profile_shared import (
    DEVICE_NAMES,
    comparison_lists,
    device_note,
    finding_change,
    notes,
    process_remarks,
    trace_lines,
)
from tpuport.output.profile_tables import (
    changes_table,
    compilation_table,
    processes_table,
    steps_table,
)
from tpuport.output.profile_text_chips import chips, source_listing
from tpuport.output.profile_text_gains import costs_by_module, fusion_gains
from tpuport.output.profile_text_table import rich_table
from tpuport.output.profile_units import NONE, change
from tpuport.profile.analyses import Report
from tpuport.profile.analyses.batches import Batches
from tpuport.profile.analyses.modes import StepTime
from tpuport.profile.analyses.numbers import Numbers
from tpuport.profile.analyses.processes import Processes
from tpuport.profile.analyses.programs import ProgramRow
from tpuport.profile.analyses.traces import Traces
from tpuport.profile.comparison import Comparison
from tpuport.profile.places import Place
from tpuport.profile.plan import Device, Mode
from tpuport.profile.session import Session


def render(session: Session, report: Report, console: Console) -> None:
    """Print the report to `console`."""
    parts = [
        _heading(session),
        _failures(report),
        *_measurements(session, report),
        fusion_gains(report),
        *chips(report),
        costs_by_module(report),
        *source_listing(session, report),
        _batches(report.batches),
        *map(_section, finding_sections(report)),
        _notes(session, report),
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
    table = changes_table(comparison.changes)
    if table is not None:
        console.print(rich_table(table.without_repeats()))
    for title, findings in comparison_lists(comparison):
        console.print()
        console.print(Text(title, style="bold"))
        for item in findings:
            how = Text(finding_change(item), style="green" if item.after < item.before else "red")
            console.print(Text.assemble("  ", how, "  ", _where(item.place), f"  {item.what}"))
            if item.source:
                console.print(Padding(Text(item.source, style="italic"), (0, 0, 0, 4), expand=False))


def _measurements(session: Session, report: Report) -> list[RenderableType | None]:
    """Figures; whether the modes compute the same comes first, what they gain last."""
    steps, compilation = steps_table(report), compilation_table(report)
    if steps is None:
        return []
    return [
        _losses(report),
        _numbers(report.numbers),
        rich_table(steps),
        _processes(report.processes),
        rich_table(compilation) if compilation else None,
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


def _losses(report: Report) -> RenderableType | None:
    lines = [
        Text.assemble(
            ("Losses DIFFER: ", "bold red") if item.bad else "Losses: ",
            (item.subject, "bold"),
            f" {item.verdict} {item.detail}",
        )
        for item in loss_sentences(report)
    ]
    if unknown := losses_unknown(report):
        lines.append(Text(f"Losses: {unknown}"))
    return Group(*lines) if lines else None


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


def _processes(processes: Processes) -> RenderableType | None:
    table = processes_table(processes)
    return Group(rich_table(table), *map(Text, process_remarks(processes))) if table else None


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
        parts.append(f"{before.value:g} → {after.value:g} executions a step ({change(after.value / before.value)})")
    if device is not Device.EMULATED_TPU and eager and time and time.median.value:
        parts.append(f"{eager.median.value / time.median.value:.2f}× the speed")
    return ", ".join(parts)


def _batches(batches: Batches) -> RenderableType | None:
    lines = [Text(f"- {line}") for line in batch_lines(batches)]
    return Group(Text(batches_title(batches), style="bold"), *lines) if lines else None


def _section(section: Section) -> RenderableType:
    if not section.findings:
        return Text(f"{section.title}.")
    lines: list[RenderableType] = [Text(section.title, style="bold")]
    for finding in section.findings:
        for site in finding.sites:
            lines.append(Text.assemble(_where(site.place), *(f"  {fact}" for fact in site.facts)))
            if site.source:
                lines.append(Padding(Text(site.source, style="italic"), (0, 0, 0, 4), expand=False))
        lines.append(Padding(Text(finding.what, "bold red" if finding.bad else "bold"), (0, 0, 0, 4), expand=False))
        if finding.plain:
            lines.append(_indented(finding.plain))
        note = rule_note(finding)
        for number, remedy in enumerate(finding.remedies):
            lines.append(_indented(f"→ {remedy}{f' {note}' if note and not number else ''}"))
    return Group(*lines)


def _indented(text: str) -> RenderableType:
    return Padding(Text(text), (0, 0, 0, 4), expand=False)


def _where(place: Place | None) -> Text:
    return Text(NONE if place is None else str(place), style="cyan")


def _notes(session: Session, report: Report) -> RenderableType | None:
    lines = [Text(f"- {line}") for line in notes(report, session.plan)]
    return Group(Text("Notes", style="bold"), *lines) if lines else None


def _traces(traces: Traces) -> RenderableType | None:
    lines = [Text(f"- {line}") for line in trace_lines(traces)]
    if traces.command:
        # Never broken, so that it can be copied.
        lines.append(Text(f"  {traces.command}", no_wrap=True, overflow="ignore"))
    return Group(Text("Traces", style="bold"), *lines) if lines else None
