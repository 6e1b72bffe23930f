"""The part of the terminal report that says what costs what, and what is gained, by module, operation and line."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from tpuport.output.profile_shared import best_fusion, fusion_title, rest
from tpuport.output.profile_tables import module_name, modules_table
from tpuport.output.profile_text_table import rich_table
from tpuport.output.profile_units import NONE, plain
from tpuport.profile.analyses import Report
from tpuport.profile.analyses.fusion import FusionRow, Saving

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


def costs_by_module(report: Report) -> RenderableType | None:
    """Return the modules that cost most."""
    table = modules_table(report)
    if table is None:
        return None
    # Where it is narrow, these two give way before any figure does.
    drawn = rich_table(table.first(_SHOWN_MODULES), gives_way=("module", table.columns[-1].name))
    more = rest(table.rows, _SHOWN_MODULES)
    return Group(drawn, Text(more, style="dim")) if more else drawn
