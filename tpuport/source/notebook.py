"""Notebooks: the lines of their code cells with their places in the file, and new lines in an else unchanged file."""

import json
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property
from json.decoder import JSONDecodeError

from tpuport.errors import TpuportError
from tpuport.model import Span
from tpuport.source import json_text
from tpuport.source.json_text import Node

_CHARACTER = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|[^\\]", re.DOTALL)
"""One character of a JSON string as it is written; a pair of surrogates is one."""

_ENDS = {"\n": "\\n", "\r\n": "\\r\\n"}
"""How a line's end is written within a JSON string."""


class NotANotebook(Exception):
    """A text that is no notebook of format 4 in Python; the message says what it is."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a cell without its end: `characters` are its characters as they are written, from `start` on."""

    text: str
    characters: tuple[str, ...]
    start: int

    @property
    def raw(self) -> str:
        """The line as it is written."""
        return "".join(self.characters)


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell; `number` counts all cells from 1, those of text too. `end` is the end of its lines."""

    number: int
    lines: tuple[Line, ...]
    source: Node
    end: str = "\n"

    @property
    def texts(self) -> list[str]:
        """The lines."""
        return [line.text for line in self.lines]


@dataclass(frozen=True)
class Notebook:
    """A notebook of format 4. Raises NotANotebook for any other text."""

    text: str
    root: Node = field(init=False, repr=False)
    cells: tuple[Cell, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        try:
            root = json_text.parse(self.text)
        except JSONDecodeError as error:
            raise NotANotebook(f"not a notebook: line {error.lineno}: {error.msg}") from None
        cells = root.get("cells")
        if cells is None:
            raise NotANotebook("not a notebook of format 4: open it in Jupyter and save it again")
        if (language := self._language(root)) not in ("python", "ipython", ""):
            raise NotANotebook(f"a notebook in {language}, not in Python")
        object.__setattr__(self, "root", root)
        object.__setattr__(self, "cells", tuple(self._cells(cells)))

    @staticmethod
    def _language(root: Node) -> str:
        metadata = root.get("metadata")
        info = metadata.get("language_info") if metadata else None
        kernel = metadata.get("kernelspec") if metadata else None
        name = (info.get("name") if info else None) or (kernel.get("language") if kernel else None)
        return name.text.lower() if name else ""

    def _cells(self, cells: Node) -> list[Cell]:
        found = []
        for number, node in enumerate(cells.items, 1):
            kind, source = node.get("cell_type"), node.get("source")
            if kind is not None and kind.text == "code" and source is not None:
                found.append(self._cell(number, source))
        return found

    def _cell(self, number: int, source: Node) -> Cell:
        lines = self._lines(source)
        ends = {line.text[-1:] == "\r" for line in lines[:-1]}
        end = "\r\n" if ends == {True} else "\n"
        if end == "\r\n":
            cut = [Line(line.text[:-1], line.characters[:-1], line.start) for line in lines[:-1]]
            lines = [*cut, lines[-1]]
        text = "\n".join(line.text for line in lines)
        if "\r" in text:
            raise NotANotebook(f"cell {number} holds carriage returns that end no line")
        if "\0" in text:
            raise NotANotebook(f"cell {number} holds null characters")
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise NotANotebook(f"cell {number} holds half a character (an unpaired surrogate)")
        return Cell(number, tuple(lines), source, end)

    def _lines(self, source: Node) -> list[Line]:
        lines: list[Line] = []
        text: list[str] = []
        characters: list[str] = []
        start = source.start + 1
        for piece in source.items if isinstance(source.value, list) else [source]:
            at = piece.start + 1
            if not characters:
                start = at
            for found in _CHARACTER.finditer(self.text, at, piece.end - 1):
                written = found[0]
                character = written if len(written) == 1 else json.loads(f'"{written}"')
                if character == "\n":
                    lines.append(Line("".join(text), tuple(characters), start))
                    text, characters, start = [], [], found.end()
                else:
                    text.append(character)
                    characters.append(written)
        lines.append(Line("".join(text), tuple(characters), start))
        return lines

    # Places

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer("\n", self.text))]

    def place(self, start: int, end: int) -> Span:
        """The span of the characters of the file from `start` to `end`."""
        first, last = bisect_right(self._starts, start), bisect_right(self._starts, end)
        return Span(first, start - self._starts[first - 1], last, end - self._starts[last - 1])

    def in_file(self, cell: Cell, span: Span) -> Span:
        """Where a span of a cell stands in the file."""
        return self.place(_offset(cell, span.line, span.column), _offset(cell, span.end_line, span.end_column))

    # New lines

    def with_lines(self, changed: Mapping[int, Sequence[str]]) -> str:
        """The text with other lines for some cells, by their numbers. Lines that stay keep their bytes.

        Raises TpuportError if anything but those sources would come out changed.
        """
        text, wanted = self.text, json.loads(self.text)
        for cell in reversed(self.cells):
            if cell.number in changed and list(changed[cell.number]) != cell.texts:
                new = self._source(cell, changed[cell.number])
                text = text[: cell.source.start] + new + text[cell.source.end :]
                joined = cell.end.join(changed[cell.number])
                as_list = isinstance(cell.source.value, list)
                wanted["cells"][cell.number - 1]["source"] = joined.splitlines(keepends=True) if as_list else joined
        if _same(json.loads(text)) != _same(wanted):
            raise TpuportError("the notebook would come out with other changes", hint="please report this file")
        return text

    def _source(self, cell: Cell, lines: Sequence[str]) -> str:
        """The JSON of a cell's source, with what stays of it as it was written."""
        written = [line.raw for line in cell.lines]
        blocks = SequenceMatcher(None, cell.texts, list(lines), autojunk=False).get_opcodes()
        parts: list[str] = []
        for kind, first, last, start, stop in blocks:
            parts += written[first:last] if kind == "equal" else map(self._written, lines[start:stop])
        parts = parts or [""]  # nothing of the cell stays, as of one that only imports
        if not isinstance(cell.source.value, list):
            return f'"{_ENDS[cell.end].join(parts)}"'
        pieces = [f'"{part}{_ENDS[cell.end]}"' for part in parts[:-1]]
        if parts[-1]:
            pieces.append(f'"{parts[-1]}"')
        opening, between, closing = self._layout(cell.source)
        return opening + between.join(pieces) + closing if pieces else "[]"

    def _layout(self, source: Node) -> tuple[str, str, str]:
        """What stands before, between and after the elements of an array."""
        items = source.items
        if not items:
            return "[", ", ", "]"
        opening = self.text[source.start : items[0].start]
        between = self.text[items[0].end : items[1].start] if len(items) > 1 else "," + (opening[1:] or " ")
        return opening, between, self.text[items[-1].end : source.end]

    def _written(self, line: str) -> str:
        return json.dumps(line, ensure_ascii=self.text.isascii())[1:-1]


def _offset(cell: Cell, line: int, column: int) -> int:
    at = cell.lines[line - 1]
    return at.start + sum(map(len, at.characters[:column]))


def _same(document: dict[str, object]) -> object:
    """A notebook for comparison: how a source is cut into strings does not count."""
    cells = document["cells"]
    assert isinstance(cells, list)
    sources = ["".join(cell["source"]) if "source" in cell else None for cell in cells]
    bare = [{key: value for key, value in cell.items() if key != "source"} for cell in cells]
    return json.dumps([{**document, "cells": bare}, sources])
