"""What each mode's step would be on a chip that is not attached, by the TPU compiler's own account."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tpuport.profile.analyses.programs import step_programs
from tpuport.profile.chips.estimates import Compiled, Kernels, Memory
from tpuport.profile.chips.hlo import SCALAR
from tpuport.profile.chips.specs import CHIPS, Chip
from tpuport.profile.figures import Basis, Figure
from tpuport.profile.plan import Mode
from tpuport.profile.session import Run, Session

_OVERHEAD = 2.0
"""A step that takes more than this many times what its roofline allows is bound by neither compute nor memory."""


class Bound(StrEnum):
    """What a step's time on the device is made of."""

    COMPUTE = "compute"
    MEMORY = "memory"
    OVERHEAD = "overhead"
    """The fixed cost of kernels that are too small for the chip, and traffic within programs."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A program that the compiler did not take."""

    program: str
    executions: int
    """Times it is executed in a step."""
    reason: str


@dataclass(frozen=True, slots=True)
class ChipRow:
    """One mode's step on one device of one chip. Refused and missing programs are in none of the figures."""

    chip: str
    mode: Mode
    executions: Figure
    distinct: Figure
    boundary: Figure
    """Bytes that cross the boundaries of programs."""
    kernels: Figure
    fusions: Figure
    flops: Figure
    cycles: Figure
    time: Figure
    """Time on the device: cycles by the chip's clock. Starting the programs comes on top."""
    roofline: Figure
    """What the step takes at least: per program the longer of arithmetic and boundary traffic at published peaks."""
    bound: Bound
    launch: Figure
    """Device time per execution: where starting a program takes longer, dispatch bounds the step."""
    peak: Figure
    """Peak memory of the largest program; what lives outside it comes on top."""
    memory: Figure
    """Memory of the device."""
    unestimated: dict[str, int]
    """Kernels without an estimate, by name, and how many run in a step: they count as no time.

    Left out are those that yield a single number, which take next to none.
    """
    unknown_loops: int
    refused: tuple[Refusal, ...]
    missing: int
    """Executions of programs that were not compiled for this chip."""

    @property
    def fits(self) -> bool:
        """Whether the largest program fits into the device's memory."""
        return self.peak.value <= self.memory.value


@dataclass(frozen=True, slots=True)
class ChipReport:
    """Every chip and mode, chip by chip."""

    compiler: str
    """Version of libtpu."""
    rows: tuple[ChipRow, ...]


@dataclass(frozen=True, slots=True)
class StepProgram:
    """A program that a step executes; `compiled` is None where there is no result for it."""

    digest: str
    runs: int
    compiled: Compiled | None


def analyse_chips(session: Session) -> ChipReport:
    """Return one row a chip and mode for which there is any result."""
    rows = [_row(CHIPS[chip], run.mode, programs) for chip, run, programs in compiled_steps(session)]
    return ChipReport(next((result.compiler for result in session.compiled if result.compiler), ""), tuple(rows))


def compiled_steps(session: Session) -> Iterator[tuple[str, Run, tuple[StepProgram, ...]]]:
    """Yield, for every chip and mode, the programs of a step."""
    results = {(result.chip, result.program): result for result in session.compiled}
    for chip in dict.fromkeys(result.chip for result in session.compiled):
        for run in session.runs:
            programs = step_programs(run.records)
            if programs:
                found = ((digest, runs, results.get((chip, digest))) for digest, runs in programs.items())
                yield chip, run, tuple(StepProgram(*program) for program in found)


def _row(chip: Chip, mode: Mode, programs: tuple[StepProgram, ...]) -> ChipRow:
    used: list[tuple[int, float, Memory, Kernels]] = []
    for program in programs:
        result = program.compiled
        if result is not None and result.memory is not None and result.kernels is not None:
            used.append((program.runs, result.flops, result.memory, result.kernels))
    executions = sum(program.runs for program in programs)
    flops = sum(runs * flops for runs, flops, _, _ in used)
    boundary = sum(runs * memory.boundary for runs, _, memory, _ in used)
    cycles = sum(runs * kernels.cycles for runs, _, _, kernels in used)
    time = cycles / chip.clock
    roofline = sum(runs * max(flops / chip.flops, memory.boundary / chip.bandwidth) for runs, flops, memory, _ in used)
    unestimated: Counter[str] = Counter()
    for runs, _, _, kernels in used:
        unestimated.update({name: runs * count for name, count in Counter(kernels.unestimated).items()})
    del unestimated[SCALAR]
    return ChipRow(
        chip=chip.name,
        mode=mode,
        executions=Figure(executions, "", Basis.MEASURED),
        distinct=Figure(len(programs), "", Basis.MEASURED),
        boundary=_estimate(boundary, "B"),
        kernels=_estimate(sum(runs * kernels.kernels for runs, _, _, kernels in used)),
        fusions=_estimate(sum(runs * kernels.fusions for runs, _, _, kernels in used)),
        flops=_estimate(flops, "FLOP"),
        cycles=_estimate(cycles, "cycles"),
        time=_estimate(time, "s"),
        roofline=_estimate(roofline, "s"),
        bound=_bound(time, roofline, flops / chip.flops, boundary / chip.bandwidth),
        launch=_estimate(time / executions, "s"),
        peak=_estimate(max((memory.peak for _, _, memory, _ in used), default=0), "B"),
        memory=Figure(chip.memory, "B", Basis.MEASURED),
        unestimated=dict(unestimated.most_common()),
        unknown_loops=sum(runs * kernels.unknown_loops for runs, _, _, kernels in used),
        refused=tuple(
            Refusal(program.digest, program.runs, program.compiled.error)
            for program in programs
            if program.compiled is not None and program.compiled.error
        ),
        missing=sum(program.runs for program in programs if program.compiled is None),
    )


def _bound(time: float, roofline: float, compute: float, memory: float) -> Bound:
    if time > _OVERHEAD * roofline:
        return Bound.OVERHEAD
    return Bound.COMPUTE if compute >= memory else Bound.MEMORY


def _estimate(value: float, unit: str = "") -> Figure:
    return Figure(value, unit, Basis.ESTIMATED)
