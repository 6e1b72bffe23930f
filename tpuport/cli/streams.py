"""The streams that commands write to."""

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from tpuport.model import Outcome

if TYPE_CHECKING:
    from tpuport.output.style import Sheet

_PATIENCE = 1.0
"""Seconds after which a run counts as long."""


def sheet(*, stderr: bool = False) -> "Sheet":
    """A sheet on stdout or stderr that prints names which the stream cannot encode escaped rather than failing."""
    from tpuport.output import style

    return style.sheet(escaping(sys.stderr if stderr else sys.stdout))


def escaping(stream: TextIO) -> TextIO:
    """Return `stream`, made to write what it cannot encode escaped."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    return stream


def with_progress(outcomes: Iterator[Outcome], total: int) -> Iterator[Outcome]:
    """Pass `outcomes` on; a long run counts them on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield from outcomes
        return
    started = shown = time.monotonic()
    width = 0
    for done, outcome in enumerate(outcomes, 1):
        yield outcome
        now = time.monotonic()
        if now - started > _PATIENCE and now - shown > 0.1:
            shown = now
            line = f"{done} of {total} files"
            width = max(width, len(line))
            sys.stderr.write(f"\r{line:<{width}}")
            sys.stderr.flush()
    if width:
        sys.stderr.write("\r" + " " * width + "\r")
        sys.stderr.flush()
