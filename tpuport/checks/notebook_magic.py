"""Lines of a notebook that are no Python, and speak of CUDA."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tpuport.kinds.document import found
from tpuport.model import CellPlace, Finding, Rule, Span
from tpuport.source import ipython

if TYPE_CHECKING:
    from tpuport.kinds.notebook import Views

CUDA = re.compile(r"cuda|nccl|nvcc|torch_xla", re.IGNORECASE)


def check(views: "Views", rule: Rule) -> Iterator[Finding]:
    """A finding for every magic that names CUDA or PyTorch/XLA; shell commands have rules of their own."""
    commands = {(place.cell.number, place.line) for place in ipython.commands(*views.script)}
    for part in views.module.left_out:
        cell = part.place.cell
        for number, line in enumerate(part.lines, part.place.line):
            if (cell.number, number) in commands or not CUDA.search(line):
                continue
            span = Span(number, len(line) - len(line.lstrip()), number, len(line.rstrip()))
            finding = found(rule, views.notebook.in_file(cell, span))
            yield replace(finding, cell=CellPlace(cell.number, span), line_text=line)
            break
