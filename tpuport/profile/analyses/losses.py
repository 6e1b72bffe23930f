"""Whether all modes compute the same losses."""

import math
import statistics
from dataclasses import dataclass

from tpuport.profile.digests import LOSS_TOLERANCES, least_precise
from tpuport.profile.plan import Mode
from tpuport.profile.records import Precision, Step
from tpuport.profile.session import Run, Session

RELATIVE_TOLERANCE = LOSS_TOLERANCES["float32"]
"""Modes order floating-point operations differently; more than this is another computation."""

_NEAR_ZERO = 1e-3
"""Of the usual loss: a difference is relative to this much at least, as losses that cross zero (those of critics, of
margins) have rounding of the size of what they were computed from."""
_ROUNDING = 1e-5
"""Relative difference of losses that another order of floating-point operations makes where it starts."""
_JUMP = 30
"""Growth from all steps before, beyond which a difference has come at once."""


@dataclass(frozen=True, slots=True)
class LossRow:
    """One mode against the reference, over the losses that both have."""

    mode: Mode
    compared: int
    max_absolute: float
    max_relative: float
    first_difference: int | None
    """Step of the first loss beyond the tolerance; None when they agree."""
    tolerance: float = RELATIVE_TOLERANCE
    """Relative; it is wider where one of the two computes in half precision."""
    grown_from: float | None = None
    """Relative difference, of the size of rounding, from which the first one beyond the tolerance has grown step by
    step, as it does in training that amplifies it (GANs, large learning rates); None where it came at once."""

    @property
    def agrees(self) -> bool:
        """Whether every loss is within the tolerance."""
        return self.first_difference is None

    @property
    def is_comparable(self) -> bool:
        """Whether the mode computes what the reference does, as far as its losses can tell."""
        return self.agrees or self.grown_from is not None


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
    recorded = {run.mode.value: len(_losses(run)) for run in session.runs}
    having = [run for run in session.runs if _losses(run)]
    if not having:
        return Losses(None, recorded, RELATIVE_TOLERANCE, ())
    reference, *others = having
    rows = tuple(row for run in others if (row := compare_losses(run, reference)))
    return Losses(reference.mode, recorded, RELATIVE_TOLERANCE, rows)


def compare_losses(run: Run, reference: Run) -> LossRow | None:
    """Compare the losses that two runs have in common; None when one has none."""
    expected, actual = _losses(reference), _losses(run)
    if not expected or not actual:
        return None
    dtypes = {
        dtype for either in (run, reference) for record in either.records.of(Precision) for dtype in record.dtypes
    }
    return _compare(run.mode, expected, actual, LOSS_TOLERANCES[least_precise(dtypes)])


def _losses(run: Run) -> list[tuple[int, float]]:
    return [(step.index, loss) for step in run.records.of(Step) for loss in step.losses]


def _compare(
    mode: Mode, expected: list[tuple[int, float]], actual: list[tuple[int, float]], tolerance: float
) -> LossRow:
    absolute = relative = 0.0
    first: int | None = None
    start: float | None = None
    grown: float | None = None
    pairs = list(zip(expected, actual, strict=False))
    sizes = [abs(wanted) for _, wanted in expected if math.isfinite(wanted)]
    floor = _NEAR_ZERO * statistics.median(sizes) if sizes else 0.0
    for (step, wanted), (_, found) in pairs:
        difference, share = _difference(wanted, found, floor)
        if share > tolerance and first is None:
            first = step
            grown = start if start is not None and start <= _ROUNDING and share <= _JUMP * relative else None
        if share and start is None:
            start = share
        absolute, relative = max(absolute, difference), max(relative, share)
    return LossRow(mode, len(pairs), absolute, relative, first, tolerance, grown)


def _difference(wanted: float, found: float, floor: float) -> tuple[float, float]:
    """Return the absolute difference, and that relative to the larger loss or `floor`, whichever is larger.

    Two losses that are both NaN, or the same infinity, agree.
    """
    if wanted == found or (math.isnan(wanted) and math.isnan(found)):
        return 0.0, 0.0
    difference = abs(wanted - found)
    if not math.isfinite(difference):
        return math.inf, math.inf
    return difference, difference / max(abs(wanted), abs(found), floor)
