"""Code cells as one Python module, and as one shell script: what is not of the one is blank in the other."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tpuport.source.notebook import Cell

CELL = "__tpuport_cell__"
"""A call of it begins each cell in the module."""

LINE = "__tpuport_line__"
"""A call of it stands for what is not Python."""

_MAGIC = re.compile(r"(?P<before>\s*(?:[\w., ]+=\s*)?)(?:[%!?]|.*\?\s*$)")
_AUTOMAGIC = re.compile(r"(?P<before>\s*)(?:pip3?|conda|ls|cd|pwd|cat|cp|mv|rm|mkdir|rmdir|man|less|more)\b")
_CELL_MAGIC = re.compile(r"\s*%%(?P<name>\w+)")
_PYTHON_CELL_MAGICS = frozenset({"time", "timeit", "capture", "prun"})
"""Cell magics under which the rest of the cell is Python."""

_SHELL_CELL_MAGICS = frozenset({"bash", "sh", "shell", "script"})
_SHELL_LINE = re.compile(r"\s*(?:[\w., ]+=\s*)?(?:!{1,2}|%(?:pip|conda|sx|system)\b)")
_PLACEHOLDER = re.compile(rf"(?P<indent>[ \t]*)(?P<target>.*?){LINE}\((?P<number>\d+)\)")
_MARKER = re.compile(rf"{CELL}\((\d+)\)")


class BrokenCell(SyntaxError):
    """A cell that does not parse, and the line at which it stops."""

    def __init__(self, message: str, cell: Cell, line: int) -> None:
        super().__init__(f"{message} (cell {cell.number}, line {line})")
        self.cell = cell
        self.line = line


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a cell; both count from 1."""

    cell: Cell
    line: int


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Lines of a cell that are not Python: one, or several of one command or of a whole cell."""

    place: Place
    lines: tuple[str, ...]


@dataclass(slots=True)
class Module:
    """The Python of all code cells. `places` has one entry a line of `text`, None for a marker."""

    text: str = ""
    places: list[Place | None] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)


def module(cells: Sequence[Cell]) -> Module:
    """The cells as a module. Raises BrokenCell."""
    result = Module()
    lines: list[str] = []
    for cell in cells:
        lines.append(f"{CELL}({cell.number})")
        result.places.append(None)
        for line, at in _python(cell, result.left_out):
            lines.append(line)
            result.places.append(Place(cell, at))
    result.text = "\n".join([*lines, ""])
    return result


def alone(cell: Cell) -> tuple[str, list[LeftOut]]:
    """A cell as Python of as many lines, with `pass` for what is not Python; what does not parse stays as it is."""
    left_out: list[LeftOut] = []
    lines, _ = _replaced(cell, left_out)
    texts = [""] * len(cell.texts)
    for line, at in lines:
        found = _PLACEHOLDER.match(line)
        texts[at - 1] = f"{found['indent']}pass" if found else line
    return "\n".join(texts), left_out


def _python(cell: Cell, left_out: list[LeftOut]) -> list[tuple[str, int]]:
    """The lines of a cell as Python, each with the line of the cell that it begins at."""
    lines, broken = _replaced(cell, left_out)
    if broken is not None:
        raise broken
    return lines


def _replaced(cell: Cell, left_out: list[LeftOut]) -> tuple[list[tuple[str, int]], BrokenCell | None]:
    """Those lines, and the fault that is left where they are no Python yet."""
    own = cell.texts
    lines = [(line, number) for number, line in enumerate(own, 1)]
    first = next((index for index, line in enumerate(own) if line.strip()), 0)
    if magic := _CELL_MAGIC.match(own[first]):
        last = first + 1 if magic["name"] in _PYTHON_CELL_MAGICS else len(own)
        _leave_out(cell, lines, first, last, "", left_out)
    # Only the parser knows whether a line that begins with % is a magic or the middle of an expression or a string.
    while (error := _fault(lines)) is not None:
        stop = at = min(error.lineno or 1, len(lines)) - 1
        while at and lines[at - 1][0].endswith("\\") and not _MAGIC.match(lines[at][0]):
            at -= 1  # the tokenizer stops in the middle of a command that goes on over several lines
        found = _MAGIC.match(lines[at][0]) or _AUTOMAGIC.match(lines[at][0])
        if found is None:
            return lines, BrokenCell(error.msg, cell, lines[stop][1])
        end = at + 1
        while end < len(lines) and lines[end - 1][0].endswith("\\"):
            end += 1
        _leave_out(cell, lines, at, end, found["before"], left_out)
    return lines, None


def _leave_out(
    cell: Cell, lines: list[tuple[str, int]], start: int, end: int, before: str, left_out: list[LeftOut]
) -> None:
    texts = tuple(text for text, _ in lines[start:end])
    left_out.append(LeftOut(Place(cell, lines[start][1]), texts))
    lines[start:end] = [(f"{before}{LINE}({len(left_out) - 1})", lines[start][1])]


def _fault(lines: Sequence[tuple[str, int]]) -> SyntaxError | None:
    try:
        ast.parse("\n".join(text for text, _ in lines))
    except SyntaxError as error:
        return error
    return None


def split(text: str, left_out: Sequence[LeftOut]) -> dict[int, list[str]]:
    """The lines of each cell, by its number, out of the text of a module, with what was not Python put back."""
    cells: dict[int, list[str]] = {}
    lines: list[str] = []
    early: list[str] = []
    for line in text.removesuffix("\n").split("\n"):
        if marker := _MARKER.fullmatch(line):
            lines = cells[int(marker[1])] = early
            early = []
        elif not cells:
            early.append(line)
        else:
            lines += _restored(line, left_out)
    return cells


def _restored(line: str, left_out: Sequence[LeftOut]) -> Iterator[str]:
    found = _PLACEHOLDER.match(line)
    if found is None:
        yield line
        return
    first, *rest = left_out[int(found["number"])].lines
    yield found["indent"] + first.lstrip() if found["indent"] != _indent(first) else first
    yield from rest


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def shell(cells: Sequence[Cell], left_out: Sequence[LeftOut]) -> tuple[str, list[Place]]:
    """The shell commands of all cells as a script with a line for each line of the cells, and the places of its lines.

    What begins a command, as `!`, is as many spaces.
    """
    places = [Place(cell, line) for cell in cells for line in range(1, len(cell.lines) + 1)]
    lines = dict.fromkeys(((place.cell.number, place.line) for place in places), "")
    for part in left_out:
        magic = _CELL_MAGIC.match(part.lines[0])
        command = _SHELL_LINE.match(part.lines[0])
        texts = list(part.lines)
        if magic and magic["name"] in _SHELL_CELL_MAGICS:
            texts[0] = ""
        elif command and not magic:
            texts[0] = _command(texts[0], command.end())
        elif not _AUTOMAGIC.match(texts[0]):
            continue
        for number, text in enumerate(texts, part.place.line):
            lines[part.place.cell.number, number] = text
    return "\n".join(lines.values()) + "\n", places


def commands(script: str, places: Sequence[Place]) -> Iterator[Place]:
    """The places of the lines that hold shell commands."""
    return (place for line, place in zip(script.split("\n"), places, strict=False) if line.strip())


def _command(line: str, end: int) -> str:
    """A line with spaces for what stands before its command; `%pip` and `%conda` are the command themselves."""
    at = end - len(_named(line[:end]))
    return " " * at + line[at:]


def prefix(line: str) -> str:
    """What stands before the command in a line."""
    found = _SHELL_LINE.match(line)
    return found[0].removesuffix(_named(found[0])) if found else ""


def _named(head: str) -> str:
    """The command that a magic is named after; empty where a command follows it."""
    word = re.search(r"%(pip|conda)$", head)
    return word[1] if word else ""
