"""The user's source text beside the positions in it: as it was when the session was profiled."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tpuport.errors import UsageError
from tpuport.profile.layout import read_json, write_json
from tpuport.profile.notebooks import read_cells, split_cell
from tpuport.profile.places import Place

_LIMIT = 2_000_000
"""Bytes of the largest file that is kept."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Lines by file, files as reports name them. What the session does not hold is read where it lies."""

    directory: Path = Path()
    kept: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path, directory: Path) -> "Sources":
        """Read what `save` has written; a session without it is as good as one that keeps no file."""
        try:
            texts = read_json(path)
        except (OSError, ValueError):
            return cls(directory)
        if not isinstance(texts, dict):
            return cls(directory)
        return cls(directory, {str(name): tuple(str(text).split("\n")) for name, text in texts.items()})

    def lines(self, file: str) -> tuple[str, ...]:
        """Return the lines of a file; none when it can't be read."""
        if file not in self.kept:
            self.kept[file] = tuple(_read(self.directory / file).split("\n"))
        return self.kept[file]

    def line(self, file: str, number: int) -> str:
        """Return one line, without its indentation; empty when there is none."""
        lines = self.lines(file)
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""

    def at(self, place: Place | None) -> str:
        """Return the line at `place`, likewise."""
        return self.line(place.file, place.line) if place else ""

    def save(self, path: Path, files: Iterable[str]) -> None:
        """Keep the text of `files` in `path`."""
        write_json(path, {file: "\n".join(self.lines(file)) for file in sorted(set(files))})


def _read(path: Path) -> str:
    cell = split_cell(str(path))
    try:
        if cell is not None:
            return next((found.source for found in read_cells(Path(cell[0])) if found.number == cell[1]), "")
        if path.stat().st_size > _LIMIT:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except (OSError, UsageError):
        return ""
