"""The part of the terminal report that says what costs what, and what is gained, by module, operation and line."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tpuport.output.profile_shared import (
    best_fusion,
    first_chip,
    fusion_title,
    module_amount,
    module_name,
    module_rows,
    phase_shares,
    rest,
)
from tpuport.output.profile_units import NONE, plain
from tpuport.profile.analyses import Report
from tpuport.profile.analyses.fusion import FusionRow, Saving
from tpuport.profile.analyses.modules import ModuleTable

_SHOWN_MODULES = 8
_SHOWN_SAVINGS = 4
_NOTE = " (a program of several operations counts for each in part)"


def fusion_gains(report: Report) -> RenderableType | None:
    """Return what the mode that saves most executions saves; nothing where none does."""
    row = best_fusion(report)
    if row is None:
        return None
    lines: list[Text] = []
    for title, savings in _savings(row):
        gained = [(name, saving) for name, saving in savings if saving.saved > 0]
        for number, (name, saving) in enumerate(gained[:_SHOWN_SAVINGS]):
            change = f"{plain(saving.before.value)} → {plain(saving.after.value)}"
            head = (f"{'' if number else title:<12}", "dim")
            lines.append(Text.assemble(head, f"{change:>14}  {name}", no_wrap=True, overflow="ellipsis"))
        if more := rest(gained, _SHOWN_SAVINGS):
            lines.append(Text(f"{'':28}{more}", style="dim"))
    return Group(Text.assemble((fusion_title(row), "bold"), _NOTE), *lines)


def _savings(row: FusionRow) -> Iterator[tuple[str, Sequence[tuple[str, Saving]]]]:
    yield "by operation", [(item.operation, item.saving) for item in row.operations]
    yield "by module", [(module_name(item.module), item.saving) for item in row.modules]
    yield "by line", [(f"{item.place or NONE}  {item.source}".strip(), item.saving) for item in row.lines]


def executions_by_module(report: Report) -> RenderableType | None:
    """Return the table for a session without any chip."""
    if not any(row.module for table in report.modules.executions for row in table.rows):
        return None
    return _module_table("Executions a step by module", report.modules.executions)


def cost_by_module(report: Report) -> RenderableType:
    """Return the table for the first chip."""
    cycles = first_chip(report)
    return _module_table(f"Cost by module on {cycles[0].chip} (estimated share of a step's cycles)", cycles)


def _module_table(title: str, tables: Sequence[ModuleTable]) -> RenderableType:
    """Modules with all below them, a column a mode; the parts of a step are those of the last mode."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    # Where it is narrow, these two give way before any figure does.
    table.add_column("module", overflow="fold")
    for mode in tables:
        table.add_column(mode.mode.value, justify="right", no_wrap=True)
    table.add_column(f"of {tables[-1].mode.value}")
    rows = module_rows(tables)
    for name, found in rows[:_SHOWN_MODULES]:
        values = (NONE if row is None else module_amount(row) for row in found)
        table.add_row(Text(name), *values, Text(phase_shares(found[-1].phases) if found[-1] else "", style="dim"))
    more = rest(rows, _SHOWN_MODULES)
    return Group(table, Text(more, style="dim")) if more else table
