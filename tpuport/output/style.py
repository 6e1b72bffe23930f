"""Lines made of styled pieces, written in colour to a terminal and as they are everywhere else."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tpuport.model import Severity

if TYPE_CHECKING:
    from rich.console import Console

Line = list[tuple[str, str]]
"""Pieces of one line: text and the rich style it has in a terminal."""

SEVERITY = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


def write(console: "Console", lines: Iterable[Line]) -> None:
    """Write `lines` to the console's file."""
    if not console.is_terminal or console.no_color:
        console.file.writelines("".join(text for text, _ in line) + "\n" for line in lines)
        return
    from rich.text import Text

    for line in lines:
        console.print(Text.assemble(*line), soft_wrap=True)


def count(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
