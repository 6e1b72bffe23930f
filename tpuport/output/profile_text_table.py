"""A table of the report in a terminal."""

from collections.abc import Sequence

import rich.table
from rich.text import Text

from tpuport.output.profile_tables import Table, Tone

_STYLES = {Tone.PLAIN: "", Tone.GOOD: "green", Tone.BAD: "bold red"}


def rich_table(table: Table, *, gives_way: Sequence[str] = ()) -> rich.table.Table:
    """Return it drawn; where it is narrow, the columns of `gives_way` are broken before any other loses a figure."""
    # As wide as its title, which would be broken otherwise.
    drawn = rich.table.Table(
        title=table.title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0),
        min_width=min(len(table.title), 60),
    )  # fmt: skip
    for column in table.columns:
        drawn.add_column(
            column.name,
            justify="left" if column.words else "right",
            no_wrap=column.name not in gives_way,
            overflow="fold",
        )
    for row in table.rows:
        drawn.add_row(*(Text(cell.text, _STYLES[cell.tone]) for cell in row))
    return drawn
