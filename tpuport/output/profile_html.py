"""The profile report as one HTML page that needs nothing else: no network, no script."""

import re
from dataclasses import dataclass, field

from tpuport.errors import UsageError
from tpuport.output.profile_batches import batch_lines, batches_title
from tpuport.output.profile_headline import compiles, failures, headline
from tpuport.output.profile_numbers import number_sentences, numbers_title
from tpuport.output.profile_shared import (
    DEVICE_NAMES,
    best_fusion,
    best_table,
    chip_remarks,
    chips_note,
    device_note,
    first_chip,
    fusion_title,
    loss_warning,
    module_amount,
    module_name,
    module_rows,
    notes,
    operation_name,
    phase_shares,
    process_remarks,
    process_table,
    trace_lines,
)
from tpuport.output.profile_units import amount, duration, duration_range, memory, number, percent, plain, seconds, size
from tpuport.profile.analyses import Report
from tpuport.profile.analyses.graph_breaks import GraphBreakRow
from tpuport.profile.analyses.host_syncs import HostSyncRow
from tpuport.profile.analyses.lines import LineRow
from tpuport.profile.analyses.recompiles import RecompileRow
from tpuport.profile.machine import INSTALL_PROFILE, missing
from tpuport.profile.places import Place, shown_file
from tpuport.profile.session import Session

_PACKAGES = ("jinja2", "pygal")
_CONTEXT = 3
"""Lines of source shown around a line of which there is something to say."""


@dataclass(slots=True)
class SourceLine:
    """One line of an annotated file."""

    number: int
    text: str
    cost: LineRow | None = None
    breaks: list[GraphBreakRow] = field(default_factory=list)
    recompiles: list[RecompileRow] = field(default_factory=list)
    syncs: list[HostSyncRow] = field(default_factory=list)
    gap: bool = False
    """Whether lines before it are left out."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """An annotated file: the parts of it of which there is something to say."""

    name: str
    lines: tuple[SourceLine, ...]


def render(session: Session, report: Report) -> str:
    """Return the page.

    Raises UsageError when what draws it is not installed.
    """
    if absent := missing(_PACKAGES):
        raise UsageError(f"--format html needs {' and '.join(absent)}", hint=f"Install with: {INSTALL_PROFILE}")
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from tpuport.output.profile_charts import chip_times, step_phases, step_times

    environment = Environment(
        loader=PackageLoader("tpuport", "output"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    filters = (
        batch_lines, batches_title,
        amount, duration, duration_range, memory, module_amount, module_name, number, percent, phase_shares, plain,
        seconds, size, operation_name, chip_remarks, chips_note, fusion_title, loss_warning, shown_file, _code_spans,
    )  # fmt: skip
    environment.filters.update({function.__name__.lstrip("_"): function for function in filters})
    files = annotated(session, report)
    anchors = {
        (file.name, line.number): f"line-{number}-{line.number}"
        for number, file in enumerate(files)
        for line in file.lines
    }
    modules = first_chip(report) or report.modules.executions
    return environment.get_template("profile_report.html.jinja").render(
        session=session,
        plan=session.plan,
        report=report,
        processes=process_table(report.processes),
        process_remarks=process_remarks(report.processes),
        programs={row.mode: row for row in report.programs.rows},
        time_basis=next((row.step_time.median.basis.value for row in report.modes.rows if row.step_time), ""),
        device_name=DEVICE_NAMES[session.plan.device],
        device_note=device_note(session.plan.device),
        headline=headline(report, session.plan.device),
        failures=failures(report),
        numbers_title=numbers_title(report.numbers),
        numbers_sentences=tuple(number_sentences(report.numbers)),
        step_times=step_times(session),
        step_phases=step_phases(session),
        chip_times=chip_times(report),
        table=best_table(report),
        fusion=best_fusion(report),
        modules=module_rows(modules),
        module_tables=modules,
        notes=notes(report),
        trace_lines=trace_lines(report.traces),
        files=files,
        anchor=anchors.get,
        compiles=compiles(report),
    )


def _code_spans(text: str) -> str:
    """Return `text` as HTML, with what stands in back-quotes as code."""
    from markupsafe import Markup, escape

    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def annotated(session: Session, report: Report) -> tuple[SourceFile, ...]:
    """Return every file that a break, a recompile or a cost lies in."""
    files: dict[str, dict[int, SourceLine]] = {}

    def line(place: Place | None) -> SourceLine | None:
        if place is None:
            return None
        source = session.sources.lines(place.file)
        text = source[place.line - 1] if 0 < place.line <= len(source) else ""
        return files.setdefault(place.file, {}).setdefault(place.line, SourceLine(place.line, text))

    table = best_table(report)
    for row in table.rows if table else ():
        if found := line(row.place):
            found.cost = row
    for graph_break in report.graph_breaks.rows:
        if found := line(graph_break.place):
            found.breaks.append(graph_break)
    for recompile in report.recompiles.rows:
        if found := line(recompile.place):
            found.recompiles.append(recompile)
    for sync in report.host_syncs.rows:
        if found := line(sync.place):
            found.syncs.append(sync)
    return tuple(SourceFile(name, _with_context(session.sources.lines(name), marked)) for name, marked in files.items())


def _with_context(source: tuple[str, ...], marked: dict[int, SourceLine]) -> tuple[SourceLine, ...]:
    shown = {near for at in marked for near in range(at - _CONTEXT, at + _CONTEXT + 1)}
    lines: list[SourceLine] = []
    for at in sorted((shown & set(range(1, len(source) + 1))) | marked.keys()):
        found = marked.get(at) or SourceLine(at, source[at - 1])
        found.gap = bool(lines) and at > lines[-1].number + 1
        lines.append(found)
    return tuple(lines)
