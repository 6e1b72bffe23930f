"""The largest batch size whose step fits a chip, from runs of the script at several sizes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tpuport.profile.analyses.failures import failure
from tpuport.profile.batch_search import Measured, bounds, error, line
from tpuport.profile.chips.specs import CHIPS, GIB, Chip
from tpuport.profile.figures import Basis, Figure
from tpuport.profile.plan import Mode
from tpuport.profile.records import MemoryBeside, Program
from tpuport.profile.session import Run, Session

_TOO_LARGE = re.compile(r"total memory required for HLO temporaries \((?P<needed>[\d.]+)(?P<unit>[KMGT])\)")
"""What libtpu says of a program that does not fit by itself."""
_UNITS = {"K": 2**10, "M": 2**20, "G": GIB, "T": 2**40}


@dataclass(frozen=True, slots=True)
class BatchPoint:
    """One batch size that was run and compiled."""

    size: int
    needed: Figure | None
    """Most memory at any time of a step: what a program needs by the TPU compiler, and what lies beside it."""
    beside: Figure | None
    """Of that, what lies beside the program: measured in the run, without the chip's padding."""
    fits: bool
    problem: str
    """Why nothing is known of this size: the script failed, or the compiler did for another reason than memory."""


@dataclass(frozen=True, slots=True)
class BatchRow:
    """One chip."""

    chip: str
    mode: Mode
    limit: Figure
    """Memory that the TPU compiler leaves to programs, of one device."""
    points: tuple[BatchPoint, ...]
    """By size."""
    largest: int | None
    """The largest size that was run and compiled and fits."""
    too_large: int | None
    """The smallest that was run and compiled and does not fit."""
    estimate: int | None
    """The largest size that fits by the line through the two largest sizes; None where memory does not grow."""
    per_sample: Figure | None
    """The slope of that line."""
    error: float | None
    """How far the largest size's need was from the line through the two before it, as a share of it."""


@dataclass(frozen=True, slots=True)
class Batches:
    """Every chip; without rows where the largest batch was not asked for."""

    argument: str
    """The script's argument that sets the batch size."""
    rows: tuple[BatchRow, ...]


def analyse_batches(session: Session) -> Batches:
    """Return one row for each chip that the runs were compiled for."""
    compiled = (result.chip for run in session.batches.values() for result in run.compiled)
    rows = [_row(session, CHIPS[chip]) for chip in dict.fromkeys(compiled)]
    return Batches(session.plan.batch_argument, tuple(rows))


def measured(session: Session, chip: str) -> list[Measured]:
    """Return what is known of the sizes run so far; sizes with a problem are left out."""
    points = _points(session, CHIPS[chip])
    return [
        Measured(point.size, None if point.needed is None else int(point.needed.value), point.fits)
        for point in points
        if not point.problem
    ]


def problems(session: Session, chip: str) -> bool:
    """Whether a size could not be run or compiled."""
    return any(point.problem for point in _points(session, CHIPS[chip]))


def _points(session: Session, chip: Chip) -> list[BatchPoint]:
    return [_point(size, session.batches[size], chip) for size in sorted(session.batches)]


def _row(session: Session, chip: Chip) -> BatchRow:
    points, known = _points(session, chip), measured(session, chip.name)
    largest, too_large = bounds(known)
    rising = line(known)
    return BatchRow(
        chip=chip.name,
        mode=batch_mode(session),
        limit=Figure(chip.usable, "B", Basis.MEASURED),
        points=tuple(points),
        largest=largest,
        too_large=too_large,
        estimate=None if rising is None else rising.reach(chip.usable),
        per_sample=None if rising is None else Figure(rising.slope, "B", Basis.ESTIMATED),
        error=error(known),
    )


def batch_mode(session: Session) -> Mode:
    """Return the mode in which batch sizes are tried: compiled where it is among those asked for, else the last."""
    modes = session.plan.modes
    return Mode.COMPILED if Mode.COMPILED in modes else modes[-1]


def _point(size: int, session: Session, chip: Chip) -> BatchPoint:
    (run,) = session.runs or (None,)
    if run is None:
        return BatchPoint(size, None, None, False, "it was not run to its end")
    if why := failure(session.plan, run):
        return BatchPoint(size, None, None, False, why.what)
    needs: list[tuple[int, int]] = []
    for beside, need in _needs(session, run, chip):
        if isinstance(need, str):
            return BatchPoint(size, None, None, False, need)
        needs.append((beside + need, beside))
    if not needs:
        return BatchPoint(size, None, None, False, "the script ended before a step whose programs were counted")
    needed, beside = max(needs)
    figures = Figure(needed, "B", Basis.ESTIMATED), Figure(beside, "B", Basis.MEASURED)
    return BatchPoint(size, *figures, needed <= chip.usable, "")


def _needs(session: Session, run: Run, chip: Chip) -> Iterator[tuple[int, int | str]]:
    """Yield for each program of the counted steps what lies beside it, and what it needs or why that is not known."""
    digests = {program.index: program.sha256 for program in run.records.of(Program)}
    results = {result.program: result for result in session.compiled if result.chip == chip.name}
    for record in run.records.of(MemoryBeside):
        for index, beside in record.bytes.items():
            result = results.get(digests.get(index, ""))
            if result is None:
                yield beside, f"a program of the step was not compiled for {chip.name}"
            elif result.memory is not None:
                yield beside, result.memory.peak
            elif match := _TOO_LARGE.search(result.error):
                yield beside, int(float(match["needed"]) * _UNITS[match["unit"]])
            else:
                yield beside, f"the compiler refused a program: {result.error}"
