"""What the device is given to run: programs compiled, executions a step, graphs, and the time that compiling took."""

from collections import Counter
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
    boundary: Figure | None
    """Bytes that cross the boundaries of those programs: arguments and results of each, without the chip's padding."""
    compiled: Figure | None
    """Programs compiled in the whole run, but for those of the watched step."""
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


def step_programs(records: Records) -> dict[str, int]:
    """Return the executions of a counted step by the program's SHA-256; nothing when no step was counted."""
    digests = {program.index: program.sha256 for program in records.of(Program)}
    runs: Counter[str] = Counter()
    for index, count in (counted_step(records) or {}).items():
        runs[digests.get(index, "")] += count
    return dict(runs)


def _row(session: Session, run: Run) -> ProgramRow:
    records = run.records
    basis = time_basis(session.plan.device)
    counted = counted_step(records)
    programs = _unwatched(records)
    compiles = run.mode.compiles
    return ProgramRow(
        mode=run.mode,
        executions=None if counted is None else _count(sum(counted.values())),
        distinct=None if counted is None else _count(len(counted)),
        boundary=_boundary(session, records),
        compiled=_count(len(programs)) if programs else None,
        compile_time=Figure(sum(program.seconds for program in programs), "s", basis) if programs else None,
        failed=sum(program.failed for program in programs),
        graphs=_count(count_graphs(records)) if compiles else None,
        dynamo_time=Figure(sum(frame.seconds for frame in records.of(FrameCompiled)), "s", basis) if compiles else None,
    )


def _unwatched(records: Records) -> list[Program]:
    """Return the programs compiled for the script's own sake, in any step but the watched one."""
    kept: list[Program] = []
    new: list[Program] = []
    for item in records.items:
        if isinstance(item, Program):
            new.append(item)
        elif isinstance(item, Step):
            kept += new if item.phase is not Phase.WATCHED else ()
            new = []
    return kept + new


def _boundary(session: Session, records: Records) -> Figure | None:
    """Return the bytes of a step; None when what a program of it holds is not known."""
    programs = step_programs(records)
    if not programs or programs.keys() - session.contents.keys():
        return None
    return Figure(
        sum(runs * session.contents[digest].boundary for digest, runs in programs.items()), "B", Basis.MEASURED
    )


def _count(value: int) -> Figure:
    return Figure(value, "", Basis.MEASURED)
