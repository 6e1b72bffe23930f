"""Notebooks as Python: the code cells of an .ipynb file, without the lines that only IPython understands."""

import re
from dataclasses import dataclass
from pathlib import Path

from tpuport.errors import UsageError
from tpuport.source import ipython
from tpuport.source.notebook import NotANotebook, Notebook

SUFFIX = ".ipynb"
_CELL = re.compile(r"(?P<notebook>.*\.ipynb):cell (?P<number>\d+)")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A line of a cell that is not Python."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell; `number` counts all cells from 1, those of text too. Lines of `python` are those of the cell."""

    number: int
    source: str
    python: str
    left_out: tuple[LeftOut, ...]


def cell_file(notebook: str, number: int) -> str:
    """Return what a cell is called where a file is: in stacks and in reports."""
    return f"{notebook}:cell {number}"


def split_cell(file: str) -> tuple[str, int] | None:
    """Return the notebook and the number in the name of a cell; None when `file` is no such name."""
    match = _CELL.fullmatch(file)
    return (match["notebook"], int(match["number"])) if match else None


def read_cells(path: Path) -> tuple[Cell, ...]:
    """Read the code cells of a notebook of format 4.

    Raises OSError when it can't be read, and UsageError when it is no such notebook or not one in Python.
    """
    try:
        cells = Notebook(path.read_text(encoding="utf-8-sig")).cells
    except (NotANotebook, UnicodeDecodeError) as error:
        reason = str(error) if isinstance(error, NotANotebook) else "not a notebook: its bytes are no UTF-8"
        raise UsageError(f"{path} is {reason}") from None
    found = []
    for cell in cells:
        python, parts = ipython.alone(cell)
        left_out = [
            LeftOut(line, text.strip())
            for part in parts
            for line, text in enumerate(part.lines, part.place.line)
            if text.strip()
        ]
        found.append(
            Cell(cell.number, "\n".join(cell.texts), python, tuple(sorted(left_out, key=lambda item: item.line)))
        )
    return tuple(found)
