"""`tpuport lint`."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tpuport.cli import saving, tree
from tpuport.errors import ExitCode, UsageError
from tpuport.model import Outcome, Severity, Status

if TYPE_CHECKING:
    from tpuport.engine import Report
    from tpuport.output.formats import LintFormat

_STDIN = Path("-")


def lint(
    context: typer.Context,
    paths: tree.Paths,
    select: tree.Select = None,
    ignore: tree.Ignore = None,
    severity: Annotated[Severity, typer.Option("--severity", help="The lowest severity shown.")] = Severity.WARNING,
    fail_on: Annotated[
        Severity, typer.Option("--fail-on", help="The lowest severity shown that makes the exit status 1.")
    ] = Severity.WARNING,
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", metavar="FILE", help="Show only findings that are not in this file."),
    ] = None,
    write_baseline: Annotated[
        bool, typer.Option("--write-baseline", help="Write what is found to the baseline, and exit with 0.")
    ] = False,
    diff_base: Annotated[
        str,
        typer.Option("--diff-base", metavar="REV", help="Show only findings on lines changed since this revision."),
    ] = "",
    require_reason: Annotated[
        bool, typer.Option("--require-reason", help="A comment that ignores a finding has to say why.")
    ] = False,
    stdin_filename: Annotated[
        Path | None,
        typer.Option("--stdin-filename", metavar="FILE", help="The file whose text PATH `-`, standard input, is."),
    ] = None,
    force_exclude: tree.ForceExclude = False,
    min_torch: tree.MinTorch = "",
    rules: tree.Rules = None,
    jobs: tree.Jobs = 0,
    format_: Annotated[
        str,
        typer.Option("--format", help="Output format: text, concise, json, sarif, github, gitlab or junit."),
    ] = "text",
    json: tree.Json = False,
    output_file: Annotated[
        Path | None, typer.Option("--output-file", metavar="FILE", help="Write the report to this file.")
    ] = None,
    statistics: Annotated[
        bool, typer.Option("--statistics", help="Count findings by rule, in place of listing them.")
    ] = False,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Lint every file afresh.")] = False,
) -> None:
    """Flag code that does not run on a TPU as it stands; change nothing.

    Exit status: 0 nothing found, 1 findings, 2 wrong usage or a file that could not be read or parsed.
    """
    from tpuport import narrow
    from tpuport.engine import Report
    from tpuport.output import formats

    form = formats.lint("json" if json else format_, statistics=statistics)
    saving.check("--output-file", output_file)
    sources, given = _input(paths, stdin_filename)
    run = tree.gather(
        sources,
        select=select,
        ignore=ignore,
        min_torch=min_torch,
        rules=rules,
        require_reason=require_reason,
        force_exclude=force_exclude,
        given=given,
        caching=not no_cache,
        jobs=jobs,
        debug=bool(context.find_root().params.get("debug")),
    )
    outcomes = narrow.rated(run.settled(jobs), _severities(run))
    report = Report(outcomes, rules=run.task.rules)
    known = baseline or run.settings.baseline
    if write_baseline:
        report = _write_baseline(report, known, severity)
    else:
        if known:
            report = _against(report, known)
        if diff_base:
            report = _since(report, diff_base)
        shown, hidden = narrow.at_least(severity, report.outcomes)
        report = replace(report, outcomes=shown, hidden=hidden, notes=run.notes(shown))
    if form.wants_fixes and given is None:
        report = replace(report, fixes=_fixes(report, run))
    _print(form, report, output_file)
    if report.of(Status.FAILED):
        raise typer.Exit(ExitCode.ERROR)
    if any(narrow.RANK[finding.severity] >= narrow.RANK[fail_on] for _, finding in report.findings):
        raise typer.Exit(ExitCode.FINDINGS)


def _input(paths: Sequence[Path], stdin_filename: Path | None) -> tuple[Sequence[Path], bytes | None]:
    """The paths of the run, and the text on standard input if that is what is to be linted."""
    if _STDIN not in paths:
        if stdin_filename is not None:
            raise UsageError("--stdin-filename goes with PATH `-`", hint="tpuport lint - --stdin-filename FILE < FILE")
        return paths, None
    if len(paths) > 1:
        raise UsageError("standard input, `-`, is linted alone", hint="leave out the other PATHs")
    return [stdin_filename or Path("stdin.py")], sys.stdin.buffer.read()


def _severities(run: tree.Tree) -> dict[str, tuple[Severity, Severity]]:
    """The overrides of the settings by code; of two that cover a rule, the longer key, which says more, wins."""
    overrides = run.settings.severity
    return {
        rule.code: (rule.severity, overrides[key])
        for key in sorted(overrides, key=len)
        for rule in run.known.select([key], ())
    }


def _write_baseline(report: "Report", file: Path | None, lowest: Severity) -> "Report":
    from tpuport import baseline, narrow

    if file is None:
        raise UsageError(
            "--write-baseline needs to know where", hint="name it: --baseline FILE, or `baseline` in the settings"
        )
    shown, hidden = narrow.at_least(lowest, report.outcomes)
    old = baseline.read(file) if file.exists() else baseline.Baseline(file)
    codes = frozenset(rule.code for rule in report.rules)
    saving.save("--baseline", file, baseline.content(old.renewed(shown, codes)))
    count = sum(len(outcome.findings) for outcome in shown)
    note = f"{count} finding{'' if count == 1 else 's'} written to {file}: from now on only others are shown"
    outcomes = tuple(baseline.without(outcome, ()) for outcome in shown)
    return replace(report, outcomes=outcomes, hidden=hidden, known=count, notes=(note,))


def _against(report: "Report", file: Path) -> "Report":
    from tpuport import baseline

    codes = frozenset(rule.code for rule in report.rules)
    compared = baseline.read(file).compare(report.outcomes, codes)
    return replace(report, outcomes=compared.outcomes, known=compared.known, stale=compared.stale)


def _since(report: "Report", revision: str) -> "Report":
    from tpuport import narrow
    from tpuport.source import changes

    found = changes.since(revision, [outcome.path for outcome in report.outcomes if outcome.findings])
    outcomes, unchanged = narrow.changed(found, report.outcomes)
    return replace(report, outcomes=outcomes, unchanged=unchanged)


def _fixes(report: "Report", run: tree.Tree) -> dict[Path, Outcome]:
    """What the safe fixes make of each file with findings that have one."""
    from tpuport import engine
    from tpuport.model import Safety

    fixable = [
        outcome.path
        for outcome in report.outcomes
        if any(finding.fixable and finding.safety is Safety.SAFE for finding in outcome.findings)
    ]
    fixed = engine.run(fixable, replace(run.task, fix=True))
    return {outcome.path: outcome for outcome in fixed if outcome.status is Status.CHANGED}


def _print(form: "LintFormat", report: "Report", output_file: Path | None) -> None:
    import io

    from tpuport.cli.streams import sheet
    from tpuport.output import style

    if output_file is None:
        form.render(report, sheet())
        return
    from tpuport.output import lint_concise

    text = io.StringIO()
    form.render(report, style.Sheet(text))
    saving.save("--output-file", output_file, text.getvalue().encode(errors="backslashreplace"))
    style.write(sheet(), [lint_concise.summary(report)])
