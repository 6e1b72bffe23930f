"""Lines made of styled pieces, written in colour to a terminal and as they are everywhere else."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TextIO

from tpuport.model import Severity

Line = list[tuple[str, str]]
"""Pieces of one line: text and the rich style it has in a terminal."""

SEVERITY = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


@dataclass(frozen=True, slots=True)
class Sheet:
    """Where a format writes to, and whether colours are seen there."""

    file: TextIO
    colour: bool = False


def sheet(file: TextIO) -> Sheet:
    """A sheet for `file`, with colour as the terminal and NO_COLOR or FORCE_COLOR say."""
    forced = any(os.environ.get(name) not in (None, "", "0") for name in ("FORCE_COLOR", "TTY_COMPATIBLE"))
    return Sheet(file, (file.isatty() or forced) and not os.environ.get("NO_COLOR"))


def write(sheet: Sheet, lines: Iterable[Line]) -> None:
    """Write `lines` to the sheet's file; rich is loaded only where there is colour to write."""
    if not sheet.colour:
        sheet.file.writelines("".join(text for text, _ in line) + "\n" for line in lines)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sheet.file, highlight=False, markup=False, emoji=False)
    for line in lines:
        console.print(Text.assemble(*line), soft_wrap=True)


def count(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
