"""`tpuport report`."""

from pathlib import Path
from typing import Annotated

import typer

from tpuport.cli.report_formats import ReportFormat, print_report
from tpuport.profile.analyses import analyse
from tpuport.profile.session import load


def report(
    session: Annotated[
        Path, typer.Argument(metavar="SESSION", help="The folder that `tpuport profile` saved.", show_default=False)
    ],
    output_format: Annotated[ReportFormat, typer.Option("--format", help="Format of the report.")] = ReportFormat.TEXT,
    json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
) -> None:
    """Show a saved profiling session again; nothing is run.

    Exit codes: 0 shown, 2 not a session, or one that can't be read.
    """
    saved = load(session)
    print_report(saved, analyse(saved), ReportFormat.JSON if json else output_format)
