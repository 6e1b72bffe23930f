"""`tpuport migrate`."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tpuport.cli import saving, tree
from tpuport.errors import INTERRUPTED, ExitCode, TpuportError, UsageError
from tpuport.model import Outcome, Severity, Status

if TYPE_CHECKING:
    from tpuport.engine import Task

_NAMED = 10
"""Files listed in a refusal before the rest is only counted."""


def migrate(
    context: typer.Context,
    paths: tree.Paths,
    diff: Annotated[bool, typer.Option("--diff", help="Print the changes as a unified diff; write nothing.")] = False,
    patch: Annotated[
        Path | None, typer.Option("--patch", metavar="FILE", help="Save the unified diff; change no source.")
    ] = None,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Also apply fixes that may change numbers or behaviour on CUDA.")
    ] = False,
    select: tree.Select = None,
    ignore: tree.Ignore = None,
    min_torch: tree.MinTorch = "",
    allow_dirty: Annotated[
        bool, typer.Option("--allow-dirty", help="Also change files with work that git could not bring back.")
    ] = False,
    force_exclude: tree.ForceExclude = False,
    annotate: Annotated[
        bool, typer.Option("--annotate", help="Leave a comment at each site that needs a person.")
    ] = False,
    report_file: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Save an account of the port as Markdown.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if work is left for a person.")] = False,
    rules: tree.Rules = None,
    jobs: tree.Jobs = 0,
    format_: tree.Format = "text",
    json: tree.Json = False,
) -> None:
    """Rewrite CUDA-only PyTorch code in place, so that it runs on CUDA, TPU and CPU.

    Exit status: 0 done, 1 work is left (only with --strict), 2 wrong usage or a file that could not be read, parsed or
    written.
    """
    from tpuport import engine
    from tpuport.cli.streams import sheet
    from tpuport.output import formats

    render = formats.migrate("json" if json else format_)
    if diff and (json or format_ != "text"):
        raise UsageError("--diff prints a diff, which --format cannot change", hint="save it with --patch FILE instead")
    saving.check("--patch", patch)
    saving.check("--report", report_file)
    run = tree.gather(
        paths,
        select=select,
        ignore=ignore,
        min_torch=min_torch,
        rules=rules,
        fix=True,
        unsafe=unsafe,
        force_exclude=force_exclude,
        jobs=jobs,
        debug=bool(context.find_root().params.get("debug")),
    )
    outcomes = list(run.settled(jobs))
    if annotate:
        outcomes = [engine.annotated(outcome, run.task) for outcome in outcomes]
    notes = list(run.notes(outcomes))
    preview = diff or patch is not None
    if preview:
        base = _base(outcomes, run.root)
        content = b"".join(_diffs(outcomes, base, run.task.max_size))
        if base != Path.cwd() and content:
            notes.append(f"the diff is to be applied in {base}")
        if patch is not None:
            saving.save("--patch", patch, content)
            said = f"nothing was changed; the diff is in {patch}"
            notes.append(said if content else f"nothing to rewrite: {patch} is empty")
        if diff:
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
    else:
        notes += _way_back(outcomes, allow_dirty)
        outcomes = _write(outcomes, run.task)
    report = engine.Report(tuple(outcomes), tuple(notes), written=not preview)
    if report_file is not None:
        from tpuport.output.migrate_markdown import render as account

        saving.save("--report", report_file, account(report, run.task.rules).encode())
    render(report, sheet(stderr=diff))
    if report.of(Status.FAILED):
        raise typer.Exit(ExitCode.ERROR)
    if strict and any(finding.severity is not Severity.INFO for _, finding in report.findings):
        raise typer.Exit(ExitCode.FINDINGS)


def _way_back(outcomes: Sequence[Outcome], allow_dirty: bool) -> list[str]:
    """Refuse, before anything is written, to touch what git could not bring back; and say where there is no git."""
    from tpuport.source import git

    changed = [outcome.path for outcome in outcomes if outcome.status is Status.CHANGED]
    if allow_dirty or not changed:
        return []
    standing = git.standing(changed)
    lost = [*standing.modified, *standing.untracked]
    if lost:
        named = ", ".join(map(str, lost[:_NAMED])) + (f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else "")
        kinds = ["uncommitted changes"] * bool(standing.modified) + ["files git does not track"] * bool(
            standing.untracked
        )
        raise TpuportError(
            f"nothing was written: {' and '.join(kinds)} among the files to change, with no way back: {named}",
            hint="commit them first, see the changes with --diff, or pass --allow-dirty",
        )
    if not standing.outside:
        return []
    why = "git is not installed" if standing.git_missing else "not in a git repository"
    return [f"{why}: there is no way back to the old text of {_some(standing.outside)} but a copy of your own"]


def _some(files: Sequence[Path]) -> str:
    return str(files[0]) if len(files) == 1 else f"{len(files)} files"


def _write(outcomes: Sequence[Outcome], task: "Task") -> list[Outcome]:
    """Write each changed file; one that can't be written becomes a failed outcome and does not stop the others."""
    done: list[Outcome] = []
    try:
        for outcome in outcomes:
            if outcome.status is Status.CHANGED:
                outcome = _written(outcome, task)
            done.append(outcome)
    except KeyboardInterrupt:
        total = sum(outcome.status is Status.CHANGED for outcome in outcomes)
        written = sum(outcome.status is Status.CHANGED for outcome in done)
        written += any(_reads_as_new(outcome, task.max_size) for outcome in outcomes[len(done) : len(done) + 1])
        print(
            f"interrupted: {written} of {total} files written, each whole; the others are as they were", file=sys.stderr
        )
        raise typer.Exit(INTERRUPTED) from None
    return done


def _written(outcome: Outcome, task: "Task") -> Outcome:
    """Write a changed file, and say where in it what is left stands now."""
    from tpuport import engine
    from tpuport.source import write

    written = engine.as_written(outcome, task)
    if written.status is Status.CHANGED:
        try:
            write.replace(outcome.path, outcome.old, outcome.new, task.root, task.max_size)
        except write.Refused as error:
            return Outcome(outcome.path, Status.FAILED, str(error), findings=outcome.findings)
    return written


def _reads_as_new(outcome: Outcome, max_size: int) -> bool:
    from tpuport.source import text

    try:
        return outcome.status is Status.CHANGED and text.read(outcome.path, max_size).text == outcome.new
    except text.Unreadable:
        return False


def _base(outcomes: Sequence[Outcome], root: Path) -> Path:
    """The directory that a diff's names are relative to: the current one, if every changed file is below it."""
    here = Path.cwd()
    changed = [Path(os.path.realpath(outcome.path)) for outcome in outcomes if outcome.status is Status.CHANGED]
    for base in (here, Path(os.path.realpath(root))):
        if all(path.is_relative_to(base) for path in changed):
            return base
    return Path(os.path.commonpath([path.parent for path in changed]))


def _diffs(outcomes: Sequence[Outcome], base: Path, max_size: int) -> Iterator[bytes]:
    from tpuport.output.diff import unified
    from tpuport.source import text

    for outcome in outcomes:
        if outcome.status is Status.CHANGED:
            try:
                source = text.read(outcome.path, max_size)
            except text.Unreadable as error:
                raise TpuportError(f"{error}, though it could be a moment ago") from None
            name = Path(os.path.realpath(outcome.path)).relative_to(base).as_posix()
            yield unified(name, source.encode(outcome.old), source.encode(outcome.new))
