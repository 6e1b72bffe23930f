"""`tpuport report`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tpuport.cli.chips import CHIP_HELP, CompileWatch, chosen_chips
from tpuport.cli.report_formats import ReportFormat, print_report
from tpuport.profile.analyses import analyse
from tpuport.profile.chips.specs import ChipName
from tpuport.profile.engine import compile_for_chips
from tpuport.profile.session import load


def report(
    session: Annotated[
        Path, typer.Argument(metavar="SESSION", help="The folder that `tpuport profile` saved.", show_default=False)
    ],
    chip: Annotated[list[ChipName] | None, typer.Option(help=CHIP_HELP)] = None,
    output_format: Annotated[ReportFormat, typer.Option("--format", help="Format of the report.")] = ReportFormat.TEXT,
    json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
) -> None:
    """Show a saved profiling session again; the script is not run.

    With --chip its programs are compiled for that chip first, unless they were.

    Exit codes: 0 shown, 2 not a session, or one that can't be read.
    """
    saved = load(session)
    if chips := chosen_chips(chip, saved.plan):
        saved = compile_for_chips(saved, chips, CompileWatch(Console(stderr=True, highlight=False), chips))
    print_report(saved, analyse(saved), ReportFormat.JSON if json else output_format)
