"""The part of the terminal report that the TPU compiler gives: chips side by side, and the source with its cost."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tpuport.output.profile_shared import best_table, chip_remarks, chips_note, operation_name, phase_shares, rest
from tpuport.output.profile_text_gains import cost_by_module
from tpuport.output.profile_units import amount, duration, memory, percent, size
from tpuport.profile.analyses import Report
from tpuport.profile.analyses.chips import ChipReport, ChipRow
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


def chips_and_lines(session: Session, report: Report) -> list[RenderableType | None]:
    """Return the sections; none without `--chip`."""
    if not report.chips.rows:
        return []
    return [
        _chips(report.chips),
        _detail(report.chips),
        _remarks(report.chips),
        cost_by_module(report),
        *_listing(session, report),
    ]


def _table(title: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("chip", no_wrap=True)
    table.add_column("mode", no_wrap=True)
    return table


def _names(chips: ChipReport) -> Iterator[tuple[str, str, ChipRow]]:
    before = ""
    for row in chips.rows:
        yield "" if row.chip == before else row.chip, row.mode.value, row
        before = row.chip


def _chips(chips: ChipReport) -> RenderableType:
    table = _table("A step on a chip (estimated)")
    for name in ("time", "at least", "bound by", "launch", "boundary", "memory"):
        # In a narrow terminal the last one is broken rather than cut.
        table.add_column(name, justify="left" if name == "bound by" else "right", no_wrap=name != "memory")
    for chip, mode, row in _names(chips):
        table.add_row(
            chip,
            mode,
            duration(row.time.value),
            duration(row.roofline.value),
            row.bound.value,
            duration(row.launch.value),
            size(row.boundary.value),
            _memory(row),
        )
    return Group(table, Text(chips_note(chips), style="dim"))


def _memory(row: ChipRow) -> Text:
    if row.fits:
        return Text(f"{memory(row.peak.value)}/{memory(row.memory.value)}")
    excess = row.peak.value - row.memory.value
    return Text(f"{memory(excess)} over {memory(row.memory.value)}", style="bold red")


def _detail(chips: ChipReport) -> RenderableType:
    table = _table("Programs of a step, compiled (estimated)")
    for name in ("executions", "programs", "kernels", "fusions", "FLOP", "cycles"):
        table.add_column(name, justify="right", no_wrap=True)
    for chip, mode, row in _names(chips):
        table.add_row(
            chip,
            mode,
            f"{row.executions.value:g}",
            f"{row.distinct.value:g}",
            f"{row.kernels.value:g}",
            f"{row.fusions.value:g}",
            amount(row.flops.value),
            amount(row.cycles.value),
        )
    return table


def _remarks(chips: ChipReport) -> RenderableType | None:
    lines = chip_remarks(chips.rows)
    return Group(*(Text(f"- {line}") for line in lines)) if lines else None


def _listing(session: Session, report: Report) -> list[RenderableType]:
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


def _elsewhere(table: LineTable) -> RenderableType:
    """List what no line is known of, by operation."""
    rows = [row for row in table.rows if row.place is None and row.share >= _LEAST]
    lines = [
        Text(
            f"{percent(row.share):>6} {'':{_BAR}}        {operation_name(row)}   {phase_shares(row.phases)}",
            no_wrap=True,
        )
        for row in rows[:_SHOWN_ELSEWHERE]
    ]
    return Group(Text("no line known", style="cyan"), *lines) if lines else Text("")
