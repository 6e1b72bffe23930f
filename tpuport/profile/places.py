"""Positions in the user's source, as reports show them."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tpuport.profile.frames import innermost_user_frame, is_model_file, library_prefixes, package_path
from tpuport.profile.records import Frame, Records, Started


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A line of the user's source; `file` is relative to the directory in which the script ran, if it is below it."""

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        return f"{shown_file(self.file)}:{self.line}"


def shown_file(file: str) -> str:
    """Return the name of a file for people: of one in an installed package, its path from the package on."""
    return package_path(file) or file


class Places:
    """Turns frames into places, by what one mode's process said of its own installation."""

    def __init__(self, records: Records, directory: str) -> None:
        started = records.last(Started)
        self._prefixes = started.library_prefixes if started is not None else library_prefixes()
        self._directory = Path(directory)

    def place(self, frame: Frame | None) -> Place | None:
        """Return where `frame` is."""
        if frame is None:
            return None
        path = Path(frame.file)
        shown = path.relative_to(self._directory) if path.is_relative_to(self._directory) else path
        return Place(str(shown), frame.line, _plain_name(frame.function))

    def innermost(self, stack: Iterable[Frame]) -> Place | None:
        """Return the place of the deepest frame of `stack` (outermost first) that is the user's own."""
        return self.place(innermost_user_frame(stack, self._prefixes))

    def of_operation(self, stack: Iterable[Frame]) -> Place | None:
        """Return the line of model code that an operation with this stack belongs to, be it in an installed package."""
        frames = reversed(tuple(stack))
        return self.place(next((frame for frame in frames if is_model_file(frame.file, self._prefixes)), None))

    def is_user(self, frame: Frame) -> bool:
        """Whether `frame` is the user's own."""
        return innermost_user_frame((frame,), self._prefixes) is not None


def library_place(frame: Frame | None) -> Place | None:
    """Return where in an installed package `frame` is, from the package on; None where it is in none."""
    if frame is None or not (file := package_path(frame.file)):
        return None
    return Place(file, frame.line, frame.function)


def _plain_name(function: str) -> str:
    """Dynamo names what follows a graph break `torch_dynamo_resume_in_NAME_at_LINE`."""
    prefix = "torch_dynamo_resume_in_"
    if function.startswith(prefix):
        return function.removeprefix(prefix).rpartition("_at_")[0]
    return function
