"""The tables of the report, as every format shows them: what a column is called, and how each figure reads."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby
from typing import NamedTuple, TypeVar

from tpuport.output.profile_units import (
    NONE,
    amount,
    change,
    duration,
    duration_range,
    memory,
    number,
    percent,
    plain,
    seconds,
    size,
)
from tpuport.profile.analyses import Report
from tpuport.profile.analyses.chips import ChipReport, ChipRow
from tpuport.profile.analyses.modes import ModeRow, StepTime
from tpuport.profile.analyses.modules import ModuleRow, ModuleTable
from tpuport.profile.analyses.processes import Processes, ProcessRow
from tpuport.profile.analyses.programs import ProgramRow
from tpuport.profile.comparison import Change
from tpuport.profile.figures import Basis, Figure
from tpuport.profile.modules import Module
from tpuport.profile.phases import StepPhase

_LEAST_PHASE = 0.005
"""Share below which a part of the step is not named."""


class Tone(StrEnum):
    """What a cell says beyond its text."""

    PLAIN = ""
    GOOD = "good"
    BAD = "bad"


class Cell(NamedTuple):
    """The text of a cell, and whether it is good or bad news."""

    text: str
    tone: Tone = Tone.PLAIN


class Column(NamedTuple):
    """A column; figures stand to the right, words to the left."""

    name: str
    words: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its heading."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def header(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    def first(self, rows: int) -> "Table":
        """Return the table with that many rows at most."""
        return replace(self, rows=self.rows[:rows])

    def groups(self) -> "Iterator[Table]":
        """Yield a table for each run of rows with the same first cell."""
        for _, rows in groupby(self.rows, key=lambda row: row[0]):
            yield replace(self, rows=tuple(rows))

    def without_repeats(self) -> "Table":
        """Return the table with first cells left empty that would repeat the one above."""
        firsts = [row[0] for row in self.rows]
        pairs = zip((None, *firsts), self.rows, strict=False)
        return replace(self, rows=tuple((Cell("") if row[0] == before else row[0], *row[1:]) for before, row in pairs))


_Row = TypeVar("_Row")


def _table(title: str, columns: dict[Column, Callable[[_Row], Cell | str]], rows: Iterable[_Row]) -> Table:
    cells = (tuple(_cell(read(row)) for read in columns.values()) for row in rows)
    return Table(title, tuple(columns), tuple(cells))


def _cell(value: Cell | str) -> Cell:
    return value if isinstance(value, Cell) else Cell(value)


_COLUMN_NOTES = {
    "executions": "programs that the device is told to run in a step; each one is a launch by the host",
    "programs": "the different ones among them; in the whole run, those compiled",
    "boundary": "what the programs of a step read and write, in bytes; fusing them saves traffic",
    "time": "the median of the timed steps, with the shortest and the longest",
    "graphs": "what torch.compile made of the models; a graph break adds one",
}


def column_notes(*tables: Table | None) -> list[str]:
    """Return what the columns of these tables of modes mean."""
    shown = {name for table in tables if table for name in table.header}
    return [f"{name}: {text}" for name, text in _COLUMN_NOTES.items() if name in shown]


_Mode = tuple[ModeRow, ProgramRow]


def steps_table(report: Report) -> Table | None:
    """Return what a step takes in each mode; None when that is known of no mode."""
    programs = report.programs.rows
    if not any(row.step_time for row in report.modes.rows) and not any(row.executions for row in programs):
        return None
    columns: dict[Column, Callable[[_Mode], Cell | str]] = {Column("mode", words=True): _mode_name}
    if any(row.executions for row in programs):
        columns[Column("executions")] = lambda row: number(row[1].executions)
        columns[Column("programs")] = lambda row: number(row[1].distinct)
    if any(row.boundary for row in programs):
        columns[Column("boundary")] = lambda row: size(row[1].boundary.value) if row[1].boundary else NONE
    columns[Column("time")] = lambda row: Cell("failed", Tone.BAD) if row[0].failure else seconds(_median(row[0]))
    columns[Column("min – max")] = lambda row: _spread(None if row[0].failure else row[0].step_time)
    columns[Column("steps")] = _steps
    return _table(f"A step{_times(report)}", columns, _modes(report))


def compilation_table(report: Report) -> Table | None:
    """Return what was compiled in each mode; None when that is known of no mode."""
    columns: dict[Column, Callable[[_Mode], Cell | str]] = {Column("mode", words=True): _mode_name}
    if any(row.compiled for row in report.programs.rows):
        columns[Column("programs")] = lambda row: number(row[1].compiled)
        columns[Column("compiler")] = lambda row: seconds(row[1].compile_time)
    if any(row.graphs for row in report.programs.rows):
        columns[Column("graphs")] = lambda row: number(row[1].graphs)
        columns[Column("torch.compile")] = lambda row: seconds(row[1].dynamo_time)
    if len(columns) == 1:
        return None
    return _table(f"Compilation, in the whole run{_times(report)}", columns, _modes(report))


def time_basis(report: Report) -> str:
    """Return what the times of steps are worth; empty where there are none."""
    return next((row.step_time.median.basis.value for row in report.modes.rows if row.step_time), "")


def _times(report: Report) -> str:
    basis = time_basis(report)
    return f" (times {basis})" if basis else ""


def _modes(report: Report) -> Iterable[_Mode]:
    return zip(report.modes.rows, report.programs.rows, strict=True)


def _mode_name(row: _Mode) -> Cell:
    return Cell(row[0].mode.value, Tone.BAD if row[0].failure else Tone.PLAIN)


def _median(row: ModeRow) -> Figure | None:
    return row.step_time.median if row.step_time else None


def _steps(row: _Mode) -> str:
    time = None if row[0].failure else row[0].step_time
    return str(time.steps) if time else "0"


def _spread(time: StepTime | None) -> str:
    return NONE if time is None else duration_range(time.lowest.value, time.highest.value)


_CHIP: dict[Column, Callable[[ChipRow], Cell | str]] = {
    Column("chip", words=True): lambda row: row.chip,
    Column("mode", words=True): lambda row: row.mode.value,
}


def chips_table(chips: ChipReport, of: str = " of ") -> Table:
    """Return what a step takes on each chip; `of` stands between the memory used and that of the chip."""

    def memory_used(row: ChipRow) -> Cell:
        if row.fits:
            return Cell(f"{memory(row.peak.value)}{of}{memory(row.memory.value)}")
        return Cell(f"{memory(row.peak.value - row.memory.value)} over {memory(row.memory.value)}", Tone.BAD)

    columns: dict[Column, Callable[[ChipRow], Cell | str]] = {
        **_CHIP,
        Column("time"): lambda row: duration(row.time.value),
        Column("at least"): lambda row: duration(row.roofline.value),
        Column("bound by", words=True): lambda row: row.bound.value,
        Column("launch"): lambda row: duration(row.launch.value),
        Column("boundary"): lambda row: size(row.boundary.value),
        Column("memory"): memory_used,
    }
    return _table("A step on a chip (estimated)", columns, chips.rows)


def kernels_table(chips: ChipReport) -> Table:
    """Return what the programs of a step became on each chip."""
    columns: dict[Column, Callable[[ChipRow], Cell | str]] = {
        **_CHIP,
        Column("executions"): lambda row: f"{row.executions.value:g}",
        Column("programs"): lambda row: f"{row.distinct.value:g}",
        Column("kernels"): lambda row: f"{row.kernels.value:g}",
        Column("fusions"): lambda row: f"{row.fusions.value:g}",
        Column("FLOP"): lambda row: amount(row.flops.value),
        Column("cycles"): lambda row: amount(row.cycles.value),
    }
    return _table("Programs of a step, compiled (estimated)", columns, chips.rows)


def processes_table(processes: Processes) -> Table | None:
    """Return the runs and ranks; None when each mode has one process."""
    rows = processes.rows
    if not rows:
        return None
    basis = next((f" ({row.step_time.median.basis.value})" for row in rows if row.step_time), "")
    columns: dict[Column, Callable[[ProcessRow], Cell | str]] = {
        Column("mode", words=True): lambda row: row.mode.value,
    }
    if any(row.run > 1 for row in rows):
        columns[Column("run")] = lambda row: str(row.run)
    if any(row.rank for row in rows):
        columns[Column("rank")] = lambda row: str(row.rank)
    if any(row.executions is not None for row in rows):
        columns[Column("executions")] = lambda row: NONE if row.executions is None else str(row.executions)
    columns[Column(f"time{basis}")] = lambda row: seconds(row.step_time.median if row.step_time else None)
    columns[Column("min – max")] = lambda row: _spread(row.step_time)
    columns[Column("steps")] = lambda row: str(row.step_time.steps if row.step_time else 0)
    if any(row.failure for row in rows):
        columns[Column("failed", words=True)] = lambda row: Cell(row.failure.what if row.failure else "", Tone.BAD)
    return _table("Runs and ranks", columns, rows)


def first_chip(report: Report) -> list[ModuleTable]:
    """Return the tables of modules for the chip that is shown."""
    return [table for table in report.modules.cycles if table.chip == report.modules.cycles[0].chip]


def modules_table(report: Report) -> Table | None:
    """Return what each module takes with all below it, a column a mode: of the first chip, else in executions.

    The parts of a step are those of the last mode. None when no module is known.
    """
    tables = first_chip(report) or list(report.modules.executions)
    if not any(row.module for table in tables for row in table.rows):
        return None
    chip = tables[0].chip
    title = f"Cost by module on {chip} (estimated share of a step's cycles)" if chip else "Executions a step by module"
    columns: dict[Column, Callable[[_ModuleRows], Cell | str]] = {Column("module", words=True): lambda row: row[0]}
    for index, table in enumerate(tables):
        columns[Column(table.mode.value)] = _module_amount(index)
    columns[Column(f"of {tables[-1].mode.value}", words=True)] = lambda row: phase_shares(
        row[1][-1].phases if row[1][-1] else {}
    )
    return _table(title, columns, _module_rows(tables))


_ModuleRows = tuple[str, list[ModuleRow | None]]


def _module_rows(tables: Sequence[ModuleTable]) -> list[_ModuleRows]:
    """Return every module with its row in each table; the order is that of the first table, then of the others."""
    by_module = [{row.module: row for row in table.rows} for table in tables]
    modules = dict.fromkeys(module for rows in by_module for module in rows)
    return [(module_name(module), [rows.get(module) for rows in by_module]) for module in modules]


def _module_amount(table: int) -> Callable[[_ModuleRows], str]:
    """Return what reads a module's share of a step's cycles, or its executions, from its row in that table."""

    def amount_of(row: _ModuleRows) -> str:
        found = row[1][table]
        if found is None:
            return NONE
        return percent(found.share) if found.amount.unit else plain(found.amount.value)

    return amount_of


def module_name(module: Module | None) -> str:
    """Return what a module is called in a report."""
    return "outside of all models" if module is None else str(module)


def phase_shares(phases: dict[StepPhase, float]) -> str:
    """Return the parts of a step that something takes part in, with their shares."""
    total = sum(phases.values()) or 1
    parts = ((phase, phases.get(phase, 0.0) / total) for phase in StepPhase)
    shown = [(phase.value, share) for phase, share in parts if share >= _LEAST_PHASE]
    if len(shown) == 1:
        return shown[0][0]
    return ", ".join(f"{name} {share:.0%}" for name, share in shown)


def changes_table(changes: Sequence[Change]) -> Table | None:
    """Return the figures of two sessions side by side; None when they have none in common."""
    columns: dict[Column, Callable[[Change], Cell | str]] = {
        Column("where", words=True): lambda item: item.where,
        Column("what", words=True): lambda item: item.what,
        Column("before"): lambda item: _figure(item.before),
        Column("after"): lambda item: _figure(item.after),
        Column("change"): _ratio,
        Column("basis", words=True): lambda item: item.after.basis.value,
    }
    return _table("Before and after", columns, changes) if changes else None


def _ratio(item: Change) -> Cell:
    """A time that was emulated is neither good nor bad news."""
    if item.ratio is None:
        return Cell("")
    if item.after.basis is Basis.EMULATED or round(item.ratio, 2) == 1:
        return Cell(change(item.ratio))
    return Cell(change(item.ratio), Tone.GOOD if item.ratio < 1 else Tone.BAD)


def _figure(figure: Figure) -> str:
    if figure.unit == "s":
        return duration(figure.value)
    return size(figure.value) if figure.unit == "B" else number(figure)
