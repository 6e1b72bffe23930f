"""The profile report as Markdown, for the description of a pull request: the point in a few lines, the rest folded."""

import html
import re
from collections.abc import Iterable, Iterator

from tpuport.output.profile_batches import batch_lines, batches_title
from tpuport.output.profile_findings import Finding, Section, Site, finding_sections, first_edits, rule_note
from tpuport.output.profile_headline import failures, headline
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
    rest,
    trace_lines,
)
from tpuport.output.profile_tables import (
    Cell,
    Table,
    Tone,
    changes_table,
    chips_table,
    column_notes,
    compilation_table,
    kernels_table,
    module_name,
    modules_table,
    processes_table,
    steps_table,
)
from tpuport.output.profile_units import NONE, percent, plain
from tpuport.profile.analyses import Report
from tpuport.profile.comparison import Comparison
from tpuport.profile.comparison import Finding as ChangedFinding
from tpuport.profile.session import Session

_SHOWN_LINES = 12
_SHOWN_MODULES = 8
_CODE_OR_TAG = re.compile(r"`[^`]*`|<")


def render(session: Session, report: Report) -> str:
    """Return the report."""
    plan = session.plan
    command = _code(" ".join((plan.script_as_given, *plan.arguments)))
    sections = finding_sections(report)
    parts = (
        f"## tpuport profile `{command}`",
        f"device: {DEVICE_NAMES[plan.device]}",
        _alarms(report),
        _headline(session, report),
        _to_do(sections),
        _modes(session, report),
        *map(_section, sections),
        _fusion(report),
        _chips(report),
        _module_costs(report),
        _lines(report),
        _batches(report),
        _numbers(report),
        _notes(session, report),
        _traces(report),
    )
    return "\n\n".join(filter(None, parts)) + "\n"


def render_comparison(comparison: Comparison) -> str:
    """Return what changed between two sessions."""
    table = changes_table(comparison.changes)
    parts = [
        "## tpuport profile: before and after",
        "\n".join(f"- **{_cell(remark)}**" for remark in comparison.remarks),
        *(_changed(title, findings) for title, findings in comparison_lists(comparison)),
        _table(table) if table else "",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _changed(title: str, findings: list[ChangedFinding]) -> str:
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


def _alarms(report: Report) -> str:
    """What has to be looked at before the rest is believed."""
    lines: list[str] = []
    for shared in failures(report):
        failure = shared.failure
        where = f" at {failure.place}" if failure.place else ""
        hint = f". {failure.hint}" if failure.hint else ""
        lines.append(f"- **{shared.named} failed**{where}: {_cell(failure.what)}{hint}")
    losses = (item for item in loss_sentences(report) if item.bad)
    lines += [f"- **Losses differ:** {item.subject} {item.verdict} {_cell(item.detail)}" for item in losses]
    numbers = (item for item in number_sentences(report.numbers) if item.bad)
    lines += [f"- **{item.subject} {item.verdict}** {_cell(item.detail)}" for item in numbers]
    return "\n".join(lines)


def _headline(session: Session, report: Report) -> str:
    facts = headline(report, session.plan.device)
    if not facts:
        return ""
    values = tuple(f"**{fact.value}**{' ⚠️' if fact.bad else ''}" for fact in facts)
    return _grid(tuple(fact.title for fact in facts), (values, tuple(fact.detail for fact in facts)))


def _to_do(sections: list[Section]) -> str:
    lines = [
        f"- {_site(site)}: {_cell(finding.what)} → {_cell(finding.to_do)}" for finding, site in first_edits(sections)
    ]
    return "\n".join(("**To do first**", "", *lines)) if lines else ""


def _modes(session: Session, report: Report) -> str:
    steps, compilation, processes = steps_table(report), compilation_table(report), processes_table(report.processes)
    if steps is None:
        return ""
    said = [f"{item.subject} {item.verdict} {item.detail}" for item in loss_sentences(report)]
    if unknown := losses_unknown(report):
        said.append(unknown)
    lines = [
        *(f"- Losses: {_cell(line)}" for line in said),
        *(f"- {_cell(line)}" for line in process_remarks(report.processes)),
    ]
    tables = [f"{table.title}\n\n{_table(table)}" for table in (steps, compilation, processes) if table]
    columns = "\n".join(("What the columns mean:", "", *(f"- {line}" for line in column_notes(steps, compilation))))
    body = (device_note(session.plan.device), *tables, "\n".join(lines), columns)
    return _folded("Modes", "\n\n".join(filter(None, body)))


def _section(section: Section) -> str:
    lines = [line for finding in section.findings for line in _finding(finding)]
    return _folded(section.title, "\n".join(lines)) if lines else ""


def _finding(finding: Finding) -> Iterator[str]:
    yield f"- **{_cell(finding.what)}**{f': {_cell(finding.plain)}' if finding.plain else ''}"
    for site in finding.sites:
        facts = f" ({_cell(', '.join(site.facts))})" if site.facts else ""
        yield f"  - {_site(site)}{facts}"
    note = rule_note(finding)
    for number, remedy in enumerate(finding.remedies):
        yield f"  - → {_cell(remedy)}{f' {note}' if note and not number else ''}"


def _site(site: Site) -> str:
    source = f" `{_code(site.source)}`" if site.source else ""
    return _cell(f"{site.place or 'no line known'}{source}")


def _numbers(report: Report) -> str:
    if not report.numbers.checked_steps:
        return ""
    lines: list[str] = []
    for item in number_sentences(report.numbers):
        verdict = f"**{item.verdict}**" if item.bad else item.verdict
        lines.append(f"- {item.subject} {verdict} {_cell(item.detail)}")
        lines += [f"  - {_cell(line)}" for line in item.lines]
    return _folded(numbers_title(report.numbers), "\n".join(lines))


def _chips(report: Report) -> str:
    if not report.chips.rows:
        return ""
    costs, kernels = chips_table(report.chips), kernels_table(report.chips)
    remarks = "\n".join(f"- {_cell(line)}" for line in chip_remarks(report.chips.rows))
    parts = (_table(costs), kernels.title, _table(kernels), chips_note(report.chips), remarks)
    return _folded(costs.title, "\n\n".join(filter(None, parts)))


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
    return _folded(title, _grid(("share", "line", "source", "part"), rows))


def _fusion(report: Report) -> str:
    row = best_fusion(report)
    if row is None:
        return ""
    rows = (
        (module_name(item.module), plain(item.saving.before.value), plain(item.saving.after.value))
        for item in row.modules[:_SHOWN_MODULES]
    )
    more = rest(row.modules, _SHOWN_MODULES)
    parts = (_grid(("module", "eager", row.mode.value), rows), more)
    return _folded(fusion_title(row), "\n\n".join(filter(None, parts)))


def _module_costs(report: Report) -> str:
    table = modules_table(report)
    if table is None:
        return ""
    parts = (_table(table.first(_SHOWN_MODULES)), rest(table.rows, _SHOWN_MODULES))
    return _folded(table.title, "\n\n".join(filter(None, parts)))


def _batches(report: Report) -> str:
    lines = "\n".join(f"- {_cell(line)}" for line in batch_lines(report.batches))
    return _folded(batches_title(report.batches), lines) if lines else ""


def _notes(session: Session, report: Report) -> str:
    lines = [f"- {_cell(line)}" for line in notes(report, session.plan)]
    return _folded(f"Notes: {len(lines)}", "\n".join(lines)) if lines else ""


def _traces(report: Report) -> str:
    lines = [f"- {line}" for line in trace_lines(report.traces)]
    if report.traces.command:
        lines.append(f"- TensorBoard: `{_code(report.traces.command)}`")
    return _folded("Traces", "\n".join(lines)) if lines else ""


def _folded(summary: str, body: str) -> str:
    """Return what opens with a click; the empty lines let GitHub read the body as Markdown."""
    return f"<details><summary>{html.escape(summary)}</summary>\n\n{body}\n\n</details>"


def _table(table: Table) -> str:
    rows = (
        tuple(f"**{cell.text}**" if cell.tone is Tone.BAD and cell.text else cell.text for cell in row)
        for row in table.rows
    )
    ruler = tuple("---" if column.words else "--:" for column in table.columns)
    return _grid(table.header, rows, ruler)


def _toned(cell: Cell) -> str:
    return f"**{cell.text}**" if cell.tone is Tone.BAD and cell.text else cell.text


def _grid(header: tuple[str, ...], rows: Iterable[tuple[str, ...]], ruler: tuple[str, ...] = ()) -> str:
    lines = [f"| {' | '.join(header)} |", f"|{'|'.join(ruler or ('---',) * len(header))}|"]
    return "\n".join([*lines, *(f"| {' | '.join(map(_cell, row))} |" for row in rows)])


def _cell(text: str) -> str:
    """Return `text` as it stays inside one cell, where only back-quotes mark it up: a `<` would begin a tag."""
    line = " ".join(text.split()).replace("|", "\\|")
    return _CODE_OR_TAG.sub(lambda found: "&lt;" if found[0] == "<" else found[0], line)


def _code(text: str) -> str:
    """Return `text` as it may stand between single back-quotes."""
    return text.replace("`", "'")
