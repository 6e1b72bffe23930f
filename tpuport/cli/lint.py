"""`tpuport lint`."""

from dataclasses import replace
from typing import Annotated

import typer

from tpuport.cli import tree
from tpuport.errors import ExitCode
from tpuport.model import Outcome, Severity, Status

_RANK = {Severity.INFO: 0, Severity.WARNING: 1, Severity.ERROR: 2}


def lint(
    context: typer.Context,
    paths: tree.Paths,
    select: tree.Select = None,
    ignore: tree.Ignore = None,
    severity: Annotated[Severity, typer.Option("--severity", help="The lowest severity shown.")] = Severity.WARNING,
    min_torch: tree.MinTorch = "",
    rules: tree.Rules = None,
    jobs: tree.Jobs = 0,
    format_: tree.Format = "text",
    json: tree.Json = False,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Lint every file afresh.")] = False,  # noqa: ARG001
) -> None:
    """Flag code that does not run on a TPU as it stands; change nothing.

    Exit status: 0 nothing found, 1 findings, 2 wrong usage or a file that could not be read or parsed.
    """
    from tpuport.cli.streams import sheet
    from tpuport.engine import Report
    from tpuport.output import formats

    render = formats.chosen(formats.LINT, "json" if json else format_)
    run = tree.gather(
        paths,
        select=select,
        ignore=ignore,
        min_torch=min_torch,
        rules=rules,
        debug=bool(context.find_root().params.get("debug")),
    )
    outcomes = tuple(run.settled(jobs))
    shown = tuple(_at_least(severity, outcome) for outcome in outcomes)
    hidden = sum(len(outcome.findings) for outcome in outcomes) - sum(len(outcome.findings) for outcome in shown)
    report = Report(shown, run.notes, hidden)
    render(report, sheet())
    if report.of(Status.FAILED):
        raise typer.Exit(ExitCode.ERROR)
    if report.findings:
        raise typer.Exit(ExitCode.FINDINGS)


def _at_least(lowest: Severity, outcome: Outcome) -> Outcome:
    findings = tuple(finding for finding in outcome.findings if _RANK[finding.severity] >= _RANK[lowest])
    if len(findings) == len(outcome.findings):
        return outcome
    return replace(outcome, findings=findings, status=Status.FINDINGS if findings else Status.UNCHANGED)
