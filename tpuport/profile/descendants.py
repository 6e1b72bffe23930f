"""Processes that a script leaves behind, whatever session, group or environment they have moved to."""

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


@contextmanager
def none_left_behind() -> Iterator[None]:
    """End, on leaving, every process below this one that was started meanwhile.

    While it lasts, the kernel gives this process the orphans among them, so that none gets away by a double fork.
    """
    before = _children()
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        while left := _children() - before:
            for child in left:
                try:
                    os.kill(child, signal.SIGKILL)
                except PermissionError:
                    # It runs as another user by now, and is out of reach.
                    before.add(child)
                    continue
                with suppress(ChildProcessError):
                    os.waitpid(child, 0)
        prctl(_PR_SET_CHILD_SUBREAPER, 0)


def _children() -> set[int]:
    own, found = os.getpid(), set[int]()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name, in parentheses, may hold anything; behind it stand state and parent.
            if int(entry.read_text(errors="replace").rpartition(")")[2].split()[1]) == own:
                found.add(int(entry.parent.name))
    return found
