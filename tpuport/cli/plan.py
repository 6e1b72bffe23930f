"""`tpuport plan`."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tpuport.cli import saving, tree
from tpuport.errors import ExitCode
from tpuport.model import Outcome, Status

PlanFormat = Annotated[str, typer.Option("--format", help="Output format: text, markdown or json.")]


def plan(
    context: typer.Context,
    paths: tree.Paths,
    min_torch: tree.MinTorch = "",
    rules: tree.Rules = None,
    jobs: tree.Jobs = 0,
    format_: PlanFormat = "text",
    json: tree.Json = False,
    output_file: Annotated[
        Path | None, typer.Option("--output-file", metavar="FILE", help="Write the page to this file.")
    ] = None,
) -> None:
    """Plan a port: what is automatic, what needs a person, what blocks it, and the next commands. Changes nothing.

    Exit status: 0 done, 2 wrong usage or a file that could not be read or parsed.
    """
    from tpuport import plan as plans
    from tpuport.cli.streams import sheet
    from tpuport.engine import Report
    from tpuport.output import formats, style
    from tpuport.source import torch_floor

    render = formats.plan("json" if json else format_)
    saving.check("--output-file", output_file)
    run = tree.gather(
        paths,
        select=None,
        ignore=None,
        min_torch=min_torch,
        rules=rules,
        fix=True,
        everything=True,
        jobs=jobs,
        debug=bool(context.find_root().params.get("debug")),
    )
    outcomes = tuple(run.settled(jobs))
    report = Report(outcomes, run.notes(outcomes))
    made = plans.make(
        report,
        run.task.rules,
        paths,
        min_torch,
        dirty=_is_dirty(outcomes),
        held=tree.held_back(outcomes) if torch_floor.older(run.floor.version, torch_floor.NEWEST) else 0,
    )
    if output_file is None:
        render(made, sheet())
    else:
        page = io.StringIO()
        render(made, style.Sheet(page))
        saving.save("--output-file", output_file, page.getvalue().encode())
    if report.of(Status.FAILED):
        raise typer.Exit(ExitCode.ERROR)


def _is_dirty(outcomes: Sequence[Outcome]) -> bool:
    """Whether git holds no copy of a file that would change."""
    from tpuport.source import git

    standing = git.standing([outcome.path for outcome in outcomes if outcome.status is Status.CHANGED])
    return bool(standing.modified or standing.untracked)
