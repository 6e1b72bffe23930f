"""Whether all modes compute the same losses."""

import math
from dataclasses import dataclass

from tpuport.profile.plan import Mode
from tpuport.profile.records import Step
from tpuport.profile.session import Run, Session

RELATIVE_TOLERANCE = 1e-3
"""Modes order floating-point operations differently; more than this is another computation."""


@dataclass(frozen=True, slots=True)
class LossRow:
    """One mode against the reference, over the losses that both have."""

    mode: Mode
    compared: int
    max_absolute: float
    max_relative: float
    first_difference: int | None
    """Step of the first loss beyond the tolerance; None when they agree."""

    @property
    def agrees(self) -> bool:
        """Whether every loss is within the tolerance."""
        return self.first_difference is None


@dataclass(frozen=True, slots=True)
class Losses:
    """The comparison. Without a reference (no losses at all, or one mode only) there are no rows."""

    reference: Mode | None
    recorded: dict[str, int]
    """Losses by mode."""
    tolerance: float
    rows: tuple[LossRow, ...]

    @property
    def agree(self) -> bool:
        """Whether no mode differs from the reference."""
        return all(row.agrees for row in self.rows)


def analyse_losses(session: Session) -> Losses:
    """Compare every mode's losses with those of the first mode that has any."""
    series = {run.mode: _losses(run) for run in session.runs}
    recorded = {mode.value: len(losses) for mode, losses in series.items()}
    having = [mode for mode, losses in series.items() if losses]
    if not having:
        return Losses(None, recorded, RELATIVE_TOLERANCE, ())
    reference, *others = having
    rows = tuple(_compare(mode, series[reference], series[mode]) for mode in others)
    return Losses(reference, recorded, RELATIVE_TOLERANCE, rows)


def _losses(run: Run) -> list[tuple[int, float]]:
    return [(step.index, loss) for step in run.records.of(Step) for loss in step.losses]


def _compare(mode: Mode, expected: list[tuple[int, float]], actual: list[tuple[int, float]]) -> LossRow:
    absolute = relative = 0.0
    first: int | None = None
    pairs = list(zip(expected, actual, strict=False))
    for (step, wanted), (_, found) in pairs:
        difference, share = _difference(wanted, found)
        absolute, relative = max(absolute, difference), max(relative, share)
        if share > RELATIVE_TOLERANCE and first is None:
            first = step
    return LossRow(mode, len(pairs), absolute, relative, first)


def _difference(wanted: float, found: float) -> tuple[float, float]:
    """Return the absolute and the relative difference; two losses that are both NaN, or the same infinity, agree."""
    if wanted == found or (math.isnan(wanted) and math.isnan(found)):
        return 0.0, 0.0
    difference = abs(wanted - found)
    if not math.isfinite(difference):
        return math.inf, math.inf
    return difference, difference / max(abs(wanted), abs(found))
