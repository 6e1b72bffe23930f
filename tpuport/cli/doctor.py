"""`tpuport doctor`."""

import json as json_format
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tpuport.cli.versions import collect
from tpuport.profile.codec import encode
from tpuport.profile.machine import Ability, abilities

_SCHEMA_VERSION = 1
_TITLES = {
    "tpu": "TPU",
    "emulated-tpu": "emulated TPU",
    "tpu-compiler": "TPU compiler",
    "cuda": "CUDA",
    "cpu": "CPU",
}


class DoctorFormat(StrEnum):
    """A format of doctor's output."""

    TEXT = "text"
    JSON = "json"


def doctor(
    output_format: Annotated[DoctorFormat, typer.Option("--format", help="Format of the output.")] = DoctorFormat.TEXT,
    json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
) -> None:
    """Say what this machine can profile on, what is missing for the rest, and which versions are installed.

    torch is asked in a process of its own and within a time limit. Exit code: always 0.
    """
    found = abilities()
    versions = collect()
    if json or output_format is DoctorFormat.JSON:
        document = {
            "schema": "tpuport.doctor",
            "version": _SCHEMA_VERSION,
            "abilities": {ability.name: encode(ability) for ability in found},
            "versions": versions,
        }
        print(json_format.dumps(document, indent=2))
        return
    console = Console(highlight=False)
    console.print(_table(found))
    console.print()
    for name, value in versions.items():
        console.print(f"{name:<28}{value or 'not installed'}", markup=False, soft_wrap=True)


def _table(found: tuple[Ability, ...]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for ability in found:
        sign = Text("yes", style="green") if ability.available else Text("no", style="yellow")
        detail = ability.detail if not ability.remedy else f"{ability.detail}. {ability.remedy}"
        table.add_row(_TITLES[ability.name], sign, Text(detail))
    return table
