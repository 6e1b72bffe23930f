"""What a program holds before any compiler has seen it: torch operations with their Python stacks, and its boundary."""

from dataclasses import dataclass
from pathlib import Path

from tpuport.profile.chips.estimates import SourceFrame
from tpuport.profile.codec import DecodeError, decode
from tpuport.profile.layout import CONTENTS, read_json


@dataclass(frozen=True, slots=True)
class Located:
    """One torch operation at one place."""

    frame: int
    """Entry in the table of frames, counted from 1; 0 where no source is known."""
    operation: str
    """Name of the torch operation."""


@dataclass(frozen=True, slots=True)
class Contents:
    """One program as torch_tpu hands it to a compiler."""

    arguments: int
    """Bytes of its arguments."""
    outputs: int
    """Bytes of its results."""
    aliases: int
    """Bytes of those results that lie where an argument lay."""
    frames: tuple[SourceFrame, ...]
    operations: tuple[Located, ...]

    @property
    def boundary(self) -> int:
        """Bytes that cross the program's boundary."""
        return self.arguments + self.outputs - self.aliases


def load_contents(session: Path) -> dict[str, Contents]:
    """Return what a session holds, by the program's SHA-256; damaged files count as absent."""
    found: dict[str, Contents] = {}
    for path in sorted((session / CONTENTS).glob("*.json")):
        try:
            found[path.stem] = decode(Contents, read_json(path))
        except (OSError, ValueError, DecodeError):
            continue
    return found
