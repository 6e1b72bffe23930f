"""Standard input that is always empty and says when it is read."""

import io
import sys
from collections.abc import Callable


class _NoInput(io.RawIOBase):
    def __init__(self, was_read: Callable[[], None]) -> None:
        self._was_read: Callable[[], None] | None = was_read

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 0

    def readinto(self, _buffer: object) -> int:
        if self._was_read is not None:
            report, self._was_read = self._was_read, None
            report()
        return 0


def replace_stdin(was_read: Callable[[], None]) -> None:
    """Put an empty sys.stdin into place; `was_read` is called when the script first reads it."""
    sys.stdin = io.TextIOWrapper(io.BufferedReader(_NoInput(was_read)), encoding="utf-8")
