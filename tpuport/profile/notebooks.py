"""Notebooks as Python: the code cells of an .ipynb file, without the lines that only IPython understands."""

import ast
import json
import re
from dataclasses import dataclass
from pathlib import Path

from tpuport.errors import UsageError

SUFFIX = ".ipynb"
_CELL = re.compile(r"(?P<notebook>.*\.ipynb):cell (?P<number>\d+)")
_MAGIC = re.compile(r"(?P<indent>\s*)(?:[%!?]|[\w.]+\s*=\s*[%!]|.*\?\s*$)")
"""A magic, a shell command or a question, alone or assigned."""
_CELL_MAGIC = re.compile(r"\s*%%(?P<name>\w+)")
_PYTHON_CELL_MAGICS = frozenset({"time", "timeit", "capture", "prun"})
"""Cell magics under which the rest of the cell is Python."""


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
        notebook = json.loads(path.read_text(encoding="utf-8"))
        cells = [(cell["cell_type"], cell["source"]) for cell in notebook["cells"]]
        language = notebook.get("metadata", {}).get("language_info", {}).get("name", "python")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(
            f"{path} is not a notebook of format 4",
            hint="Open it in Jupyter and save it again; that brings an older one up to date.",
        ) from None
    if language != "python":
        raise UsageError(f"{path} is a notebook in {language}, not in Python")
    return tuple(
        _cell(number, source if isinstance(source, str) else "".join(source))
        for number, (kind, source) in enumerate(cells, 1)
        if kind == "code"
    )


def _cell(number: int, source: str) -> Cell:
    lines = source.split("\n")
    left_out: list[LeftOut] = []
    first = next((index for index, line in enumerate(lines) if line.strip()), 0)
    if magic := _CELL_MAGIC.match(lines[first]):
        last = first + 1 if magic["name"] in _PYTHON_CELL_MAGICS else len(lines)
        _leave_out(lines, first, last, left_out)
    # Only the parser knows whether a line that begins with % is a magic or the middle of an expression or a string.
    while (fault := _fault(lines)) is not None and (match := _MAGIC.match(lines[fault])):
        end = fault + 1
        while end < len(lines) and lines[end - 1].endswith("\\"):
            end += 1
        _leave_out(lines, fault, end, left_out, match["indent"])
    return Cell(number, source, "\n".join(lines), tuple(sorted(left_out, key=lambda item: item.line)))


def _leave_out(lines: list[str], start: int, end: int, left_out: list[LeftOut], indent: str = "") -> None:
    for index in range(start, end):
        if lines[index].strip():
            left_out.append(LeftOut(index + 1, lines[index].strip()))
        lines[index] = f"{indent}pass" if index == start else ""


def _fault(lines: list[str]) -> int | None:
    """Return the index of the line at which the parser stops."""
    try:
        ast.parse("\n".join(lines))
    except SyntaxError as error:
        return error.lineno - 1 if error.lineno and error.lineno <= len(lines) else None
    except ValueError:
        return None
    return None
