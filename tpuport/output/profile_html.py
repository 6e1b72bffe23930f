"""The profile report, and the comparison of two, each as one HTML page that needs nothing else: no network, no script.

The templates are in `profile_page/`, a file a section.
"""

import html
import re
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from tpuport.errors import UsageError
from tpuport.output.profile_batches import batch_lines, batches_title
from tpuport.output.profile_findings import Finding, Section, Site, finding_sections, first_edits, rule_note
from tpuport.output.profile_headline import comparison_headline, failures, headline
from tpuport.output.profile_numbers import loss_sentences, losses_unknown, number_sentences, numbers_title
from tpuport.output.profile_shared import (
    DEVICE_NAMES,
    best_fusion,
    best_table,
    chip_remarks,
    chips_note,
    comparison_lists,
    device_note,
    finding_change,
    fusion_title,
    notes,
    operation_name,
    process_remarks,
    trace_lines,
)
from tpuport.output.profile_tables import (
    changes_table,
    chips_table,
    column_notes,
    compilation_table,
    kernels_table,
    module_name,
    modules_table,
    processes_table,
    steps_table,
    time_basis,
)
from tpuport.output.profile_units import duration, percent, plain
from tpuport.profile.analyses import Report
from tpuport.profile.analyses.lines import LineRow, LineTable
from tpuport.profile.comparison import Comparison
from tpuport.profile.machine import INSTALL_PROFILE, missing
from tpuport.profile.places import Place, shown_file
from tpuport.profile.session import Session

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_PACKAGES = ("jinja2", "pygal")
_CONTEXT = 3
"""Lines of source shown around a line of which there is something to say."""
_SHOWN_ELSEWHERE = 8
_LEAST = 0.0005
"""Share of a step below which a percentage would read 0.0%."""


@dataclass(slots=True)
class SourceLine:
    """One line of an annotated file."""

    number: int
    text: str
    cost: LineRow | None = None
    marks: list[tuple[Finding, Site]] = field(default_factory=list)
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
    environment = _environment()
    from tpuport.output.profile_charts import chip_times, step_phases, step_times

    steps, compilation = steps_table(report), compilation_table(report)
    sections = finding_sections(report)
    table = best_table(report)
    files = annotated(session, sections, table)
    anchors = {
        (file.name, line.number): f"line-{number}-{line.number}"
        for number, file in enumerate(files)
        for line in file.lines
    }
    return environment.get_template("report.html.jinja").render(
        session=session,
        plan=session.plan,
        report=report,
        device_name=DEVICE_NAMES[session.plan.device],
        device_note=device_note(session.plan.device),
        failures=failures(report),
        headline=headline(report, session.plan.device),
        first_edits=tuple(first_edits(sections)),
        steps=steps,
        compilation=compilation,
        column_notes=column_notes(steps, compilation),
        losses=tuple(loss_sentences(report)),
        losses_unknown=losses_unknown(report),
        time_basis=time_basis(report),
        step_times=step_times(session),
        step_phases=step_phases(session),
        processes=processes_table(report.processes),
        process_remarks=process_remarks(report.processes),
        numbers_title=numbers_title(report.numbers),
        numbers=tuple(number_sentences(report.numbers)),
        sections=sections,
        chip_times=chip_times(report),
        chips=chips_table(report.chips),
        kernels=kernels_table(report.chips),
        fusion=best_fusion(report),
        modules=modules_table(report),
        table=table,
        files=files,
        anchor=anchors.get,
        elsewhere=_elsewhere(table),
        notes=notes(report, session.plan),
        trace_lines=trace_lines(report.traces),
    )


def render_comparison(comparison: Comparison, before: Session, after: Session) -> str:
    """Return the page of what changed between two sessions.

    Raises UsageError when what draws it is not installed.
    """
    environment = _environment()
    from tpuport.output.profile_charts import changed_figures

    changes = comparison.changes
    on_chips = [change for change in changes if " on " in change.where]
    return environment.get_template("comparison.html.jinja").render(
        comparison=comparison,
        before=before,
        after=after,
        device_name=DEVICE_NAMES[after.plan.device],
        device_note=device_note(after.plan.device),
        headline=comparison_headline(comparison),
        lists=comparison_lists(comparison),
        changes=changes_table(changes),
        executions=changed_figures(changes, "executions a step", plain),
        chip_times=changed_figures(on_chips, "time a step", duration),
    )


def _environment() -> "Environment":
    if absent := missing(_PACKAGES):
        raise UsageError(f"--format html needs {' and '.join(absent)}", hint=f"Install with: {INSTALL_PROFILE}")
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("tpuport", "output/profile_page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (
        batch_lines, batches_title, chip_remarks, chips_note, finding_change, fusion_title, module_name, operation_name,
        percent, plain, rule_note, shown_file, _code_spans, _headings,
    )  # fmt: skip
    environment.filters.update({function.__name__.lstrip("_"): function for function in filters})
    return environment


def _code_spans(text: str) -> "Markup":
    """Return `text` as HTML, with what stands in back-quotes as code."""
    from markupsafe import Markup, escape

    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _headings(page: str) -> list[tuple[str, str]]:
    """Return the sections of a page as they are called, by their anchors."""
    found = re.findall(r'<h2 id="([^"]+)">([^<]+)', page)
    return [(anchor, html.unescape(name).partition(" (")[0].strip()) for anchor, name in found]


def annotated(session: Session, sections: list[Section], table: LineTable | None) -> tuple[SourceFile, ...]:
    """Return every file that something was found in or, by `table`, a cost lies in."""
    files: dict[str, dict[int, SourceLine]] = {}

    def line(place: Place) -> SourceLine:
        source = session.sources.lines(place.file)
        text = source[place.line - 1] if 0 < place.line <= len(source) else ""
        return files.setdefault(place.file, {}).setdefault(place.line, SourceLine(place.line, text))

    for row in table.rows if table else ():
        if row.place is not None and row.share >= _LEAST:
            line(row.place).cost = row
    for finding in (finding for section in sections for finding in section.findings):
        for site in finding.sites:
            if site.place is not None:
                line(site.place).marks.append((finding, site))
    return tuple(SourceFile(name, _with_context(session.sources.lines(name), marked)) for name, marked in files.items())


def _elsewhere(table: LineTable | None) -> list[LineRow]:
    """Return the costs of which no line is known, the largest of them."""
    rows = table.rows if table else ()
    return [row for row in rows if row.place is None and row.share >= _LEAST][:_SHOWN_ELSEWHERE]


def _with_context(source: tuple[str, ...], marked: dict[int, SourceLine]) -> tuple[SourceLine, ...]:
    """Return the marked lines and those near them, without blank ones at either end of a part."""
    near = {around for at in marked for around in range(at - _CONTEXT, at + _CONTEXT + 1)}
    shown = sorted(near & set(range(1, len(source) + 1)) | marked.keys())
    lines: list[SourceLine] = []
    # Lines without a gap between them are as far from one another as their places in the list.
    for _, part in groupby(enumerate(shown), key=lambda item: item[1] - item[0]):
        numbers = [at for _, at in part]
        told = [at for at in numbers if at in marked or source[at - 1].strip()]
        for at in range(told[0], told[-1] + 1):
            found = marked.get(at) or SourceLine(at, source[at - 1])
            found.gap = bool(lines) and at == told[0]
            lines.append(found)
    return tuple(lines)
