"""The part of the terminal report that the TPU compiler gives: chips side by side, and the source with its cost."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from tpuport.output.profile_shared import best_table, chip_remarks, chips_note, operation_name, rest
from tpuport.output.profile_tables import chips_table, kernels_table, phase_shares
from tpuport.output.profile_text_table import rich_table
from tpuport.output.profile_units import percent
from tpuport.profile.analyses import Report
from tpuport.profile.analyses.chips import ChipReport
from tpuport.profile.analyses.lines import LineRow, LineTable
from tpuport.profile.places import shown_file
from tpuport.profile.session import Session
from tpuport.profile.sources import Sources

_BAR = 8
"""Cells of the bar that stands for the most expensive line."""
_CONTEXT = 1
"""Lines shown around a line that costs something."""
_LEAST = 0.005
"""Share of the step below which a line is not shown."""
_SHOWN_LINES = 20
"""The most expensive ones."""
_SHOWN_ELSEWHERE = 8


def chips(report: Report) -> list[RenderableType | None]:
    """Return what a step takes on each chip; nothing without `--chip`."""
    found = report.chips
    if not found.rows:
        return []
    # In a narrow terminal the memory is broken rather than cut.
    costs = rich_table(chips_table(found, of="/").without_repeats(), gives_way=("memory",))
    return [
        Group(costs, Text(chips_note(found), style="dim")),
        rich_table(kernels_table(found).without_repeats()),
        _remarks(found),
    ]


def _remarks(chips: ChipReport) -> RenderableType | None:
    lines = chip_remarks(chips.rows)
    return Group(*(Text(f"- {line}") for line in lines)) if lines else None


def source_listing(session: Session, report: Report) -> list[RenderableType | None]:
    """Return the lines that cost most on a chip, with their share; nothing without `--chip`."""
    table = best_table(report)
    if table is None or not table.rows:
        return []
    title = f"The source and its cost on {table.chip}, {table.mode.value} (estimated share of a step's cycles)"
    return [Text(title, style="bold"), *_files(session.sources, table), _elsewhere(table)]


def _files(sources: Sources, table: LineTable) -> Iterator[RenderableType]:
    by_file: dict[str, dict[int, LineRow]] = {}
    placed = [row for row in table.rows if row.place and row.share >= _LEAST]
    for row in placed[:_SHOWN_LINES]:
        if row.place:
            by_file.setdefault(row.place.file, {})[row.place.line] = row
    top = max((row.share for row in table.rows), default=1.0) or 1.0
    for file, rows in by_file.items():
        yield Group(Text(shown_file(file), style="cyan"), *_lines(sources.lines(file), rows, top))
    if more := rest(placed, _SHOWN_LINES):
        yield Text(f"{more} lines of at least {percent(_LEAST)} each", style="dim")


def _lines(source: tuple[str, ...], rows: dict[int, LineRow], top: float) -> Iterator[Text]:
    shown = sorted({near for line in rows for near in range(line - _CONTEXT, line + _CONTEXT + 1)})
    before = 0
    for line in shown:
        if line not in rows and not (0 < line <= len(source) and source[line - 1].strip()):
            continue
        if before and line > before + 1:
            yield Text(f"{'':>{_BAR + 9}}  ⋮", style="dim")
        before = line
        text = source[line - 1] if 0 < line <= len(source) else ""
        row = rows.get(line)
        if row is None:
            yield Text(f"{'':>{_BAR + 8}}{line:>5}  {text}", style="dim", no_wrap=True, overflow="ellipsis")
        else:
            bar = "█" * max(1, round(_BAR * row.share / top))
            yield Text.assemble(
                f"{percent(row.share):>6} ", (f"{bar:<{_BAR}}", "red"), f" {line:>5}  {text}",
                (f"   {phase_shares(row.phases)}", "dim"), no_wrap=True, overflow="ellipsis",
            )  # fmt: skip


def _elsewhere(table: LineTable) -> RenderableType | None:
    """List what no line is known of, by operation."""
    rows = [row for row in table.rows if row.place is None and row.share >= _LEAST]
    lines = [
        Text(
            f"{percent(row.share):>6} {'':{_BAR}}        {operation_name(row)}   {phase_shares(row.phases)}",
            no_wrap=True,
        )
        for row in rows[:_SHOWN_ELSEWHERE]
    ]
    return Group(Text("no line known", style="cyan"), *lines) if lines else None
