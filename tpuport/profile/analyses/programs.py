"""What the device is given to run: programs compiled, executions a step, graphs, and the time that compiling took."""

from dataclasses import dataclass

from tpuport.profile.figures import Basis, Figure, time_basis
from tpuport.profile.plan import Mode
from tpuport.profile.records import FrameCompiled, Phase, Program, Records, Step
from tpuport.profile.session import Run, Session


@dataclass(frozen=True, slots=True)
class ProgramRow:
    """One mode. Figures are None where the device does not let itself be watched, or nothing was counted."""

    mode: Mode
    executions: Figure | None
    """Programs launched in a step, median of the counted steps."""
    distinct: Figure | None
    """Different programs among them."""
    compiled: Figure | None
    """Programs compiled in the whole run."""
    compile_time: Figure | None
    """Time in the device's compiler, in the whole run."""
    failed: int
    """Programs that the device's compiler refused."""
    graphs: Figure | None
    """Graphs that Dynamo made; None in modes that do not compile."""
    dynamo_time: Figure | None
    """Time in torch.compile, backends included; it overlaps `compile_time`."""


@dataclass(frozen=True, slots=True)
class Programs:
    """Every mode that was run."""

    rows: tuple[ProgramRow, ...]


def analyse_programs(session: Session) -> Programs:
    """Return one row for each mode that was run."""
    return Programs(tuple(_row(session, run) for run in session.runs))


def count_graphs(records: Records) -> int:
    """Return how many graphs with at least one operation Dynamo made."""
    return sum(frame.operations > 0 and not frame.failure for frame in records.of(FrameCompiled))


def counted_step(records: Records) -> dict[int, int] | None:
    """Return the executions of one step by the program's index: of the counted steps, the middle one.

    None when no step was counted, or the device gave no program to count.
    """
    counted = [
        step.executions for step in records.of(Step) if step.phase is Phase.COUNTED and step.executions is not None
    ]
    if not counted or not records.of(Program):
        return None
    return sorted(counted, key=lambda runs: sum(runs.values()))[len(counted) // 2]


def _row(session: Session, run: Run) -> ProgramRow:
    records = run.records
    basis = time_basis(session.plan.device)
    counted = counted_step(records)
    programs = records.of(Program)
    compiles = run.mode.compiles
    return ProgramRow(
        mode=run.mode,
        executions=None if counted is None else _count(sum(counted.values())),
        distinct=None if counted is None else _count(len(counted)),
        compiled=_count(len(programs)) if programs else None,
        compile_time=Figure(sum(program.seconds for program in programs), "s", basis) if programs else None,
        failed=sum(program.failed for program in programs),
        graphs=_count(count_graphs(records)) if compiles else None,
        dynamo_time=Figure(sum(frame.seconds for frame in records.of(FrameCompiled)), "s", basis) if compiles else None,
    )


def _count(value: int) -> Figure:
    return Figure(value, "", Basis.MEASURED)
