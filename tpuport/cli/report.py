"""`tpuport report`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tpuport.cli.chips import ChipOption, chosen_chips
from tpuport.cli.limits import FailOn, enforce, limits
from tpuport.cli.report_formats import FormatOption, JsonOption, ReportFormat, print_comparison, print_report
from tpuport.cli.watches import CompileWatch
from tpuport.profile.analyses import analyse
from tpuport.profile.comparison import compare as compare_reports
from tpuport.profile.engine import compile_for_chips
from tpuport.profile.session import load


def report(
    session: Annotated[
        Path, typer.Argument(metavar="SESSION", help="The folder that `tpuport profile` saved.", show_default=False)
    ],
    chip: ChipOption = None,
    compare: Annotated[
        Path | None,
        typer.Option(
            metavar="BEFORE", help="An older session: show what changed from it to SESSION.", show_default=False
        ),
    ] = None,
    fail_on: FailOn = None,
    output_format: FormatOption = ReportFormat.TEXT,
    json: JsonOption = False,
) -> None:
    """Show a saved profiling session again; the script is not run.

    With --chip its programs are compiled for that chip first, unless they were.

    Exit codes: 0 shown, 1 a limit (--fail-on, budgets) is not kept, 2 not a session, or one that can't be read.
    """
    saved = load(session)
    thresholds = limits(fail_on, Path(saved.plan.script))
    if chips := chosen_chips(chip, saved.plan):
        saved = compile_for_chips(saved, chips, CompileWatch(Console(stderr=True, highlight=False), chips))
    chosen = ReportFormat.JSON if json else output_format
    analysed = analyse(saved)
    if compare is not None:
        before = load(compare)
        changes = compare_reports(analyse(before), analysed, (before.plan, saved.plan))
        print_comparison(changes, before, saved, chosen)
    else:
        print_report(saved, analysed, chosen)
    enforce(thresholds, analysed, saved.plan)
