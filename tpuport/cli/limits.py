"""The limits of `profile` and `report`: `--fail-on`, and the `budgets` of the settings."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from tpuport.config import load
from tpuport.errors import ExitCode
from tpuport.profile.analyses import Report
from tpuport.profile.plan import Plan
from tpuport.profile.thresholds import NAMES, Threshold, budgets, exceeded, in_force, parse

FailOn = Annotated[
    str | None,
    typer.Option(
        help="Limits, such as `graph-breaks>0,recompiles>2,slower`; beyond one, or where one can't be judged, exit "
        "code 1. They come before those of the settings (budgets), and an empty text turns these off. "
        f"Names: {', '.join(NAMES)}.",
        show_default=False,
    ),
]


def limits(fail_on: str | None, script: Path) -> tuple[Threshold, ...]:
    """Return the limits for `script`, by `--fail-on` and by the settings that hold where it lies.

    A script that is not on this machine has those of the current directory. Raises UsageError and ConfigError.
    """
    if fail_on is not None and not fail_on.strip():
        return ()
    settings = load(script if script.is_file() else Path())
    return in_force(budgets(settings), parse(fail_on or ""))


def enforce(thresholds: tuple[Threshold, ...], report: Report, plan: Plan) -> None:
    """Say on standard error which limits are not kept, and exit with code 1 if any is not."""
    broken = exceeded(thresholds, report, plan.device)
    for line in broken:
        sys.stderr.write(f"{line}\n")
    if broken:
        raise typer.Exit(ExitCode.FINDINGS)
