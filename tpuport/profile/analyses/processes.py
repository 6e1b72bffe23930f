"""Runs and ranks beside the first of each mode: how long their steps took, and what ranks do differently."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tpuport.profile.analyses.failures import Failure, failure
from tpuport.profile.analyses.graph_breaks import analyse_graph_breaks
from tpuport.profile.analyses.host_syncs import analyse_host_syncs
from tpuport.profile.analyses.losses import compare_losses
from tpuport.profile.analyses.modes import StepTime, step_time_of
from tpuport.profile.analyses.programs import count_graphs, counted_step
from tpuport.profile.analyses.recompiles import analyse_recompiles
from tpuport.profile.places import Place
from tpuport.profile.plan import Mode
from tpuport.profile.records import GraphBreak, Program, Recompile, Step
from tpuport.profile.session import Run, Session

_SLOWER = 1.05
"""A rank is called slow when its step takes this much of the fastest rank's."""


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """One process. Counts are None where the device or the mode has none."""

    mode: Mode
    run: int
    """From 1."""
    rank: int
    """From 0."""
    failure: Failure | None
    step_time: StepTime | None
    steps: int
    """All steps that ended, warm-up included."""
    executions: int | None
    """Programs launched in a counted step."""
    programs: int | None
    """Programs compiled in the whole run."""
    graphs: int | None
    """Graphs that Dynamo made."""
    breaks: int | None
    """Graph breaks as Dynamo logged them."""
    recompiles: int | None


@dataclass(frozen=True, slots=True)
class Processes:
    """Every process of a session that has more than one for a mode; without rows otherwise."""

    rows: tuple[ProcessRow, ...]
    differences: tuple[str, ...]
    """Where ranks of one run did not do the same."""
    slowest: tuple[str, ...]
    """Ranks that take longer for a step than the others."""
    unrepeatable: tuple[str, ...]
    """Runs whose losses are not those of the mode's first run, though the seed is the same."""


def analyse_processes(session: Session) -> Processes:
    """Return one row for each process, in the order of modes, runs and ranks."""
    if not session.others:
        return Processes((), (), (), ())
    order = {run.mode: number for number, run in enumerate(session.runs)}
    runs = sorted((*session.runs, *session.others), key=lambda run: (order.get(run.mode, 0), run.number, run.rank))
    rows = tuple(_row(session, run) for run in runs)
    ranks: dict[tuple[Mode, int], list[ProcessRow]] = {}
    for row in rows:
        ranks.setdefault((row.mode, row.run), []).append(row)
    return Processes(
        rows,
        (*(line for group in ranks.values() for line in _differences(group)), *_found_in_one_rank_alone(session)),
        tuple(line for group in ranks.values() for line in _slowest(group)),
        tuple(_unrepeatable(session)),
    )


def _row(session: Session, run: Run) -> ProcessRow:
    records = run.records
    counted = counted_step(records)
    compiles = run.mode.compiles
    programs = records.of(Program)
    return ProcessRow(
        mode=run.mode,
        run=run.number,
        rank=run.rank,
        failure=failure(session.plan, run),
        step_time=step_time_of((run,), session.plan.device),
        steps=len(records.of(Step)),
        executions=None if counted is None else sum(counted.values()),
        programs=len(programs) if programs else None,
        graphs=count_graphs(records) if compiles else None,
        breaks=len(records.of(GraphBreak)) if compiles else None,
        recompiles=len(records.of(Recompile)) if compiles else None,
    )


def _differences(ranks: list[ProcessRow]) -> Iterator[str]:
    for what in ("executions", "programs", "graphs", "breaks", "recompiles"):
        values: dict[int | None, list[str]] = {}
        for row in ranks:
            values.setdefault(getattr(row, what), []).append(str(row.rank))
        if len(values) > 1:
            shown = ", ".join(
                f"{'none' if value is None else value} in rank {' and '.join(who)}" for value, who in values.items()
            )
            yield f"{_name(ranks[0])}: {what}: {shown}"


def _found_in_one_rank_alone(session: Session) -> Iterator[str]:
    """Name what the report's tables lack, as they are those of rank 0."""
    first = {run.mode: run for run in session.runs}
    for run in session.others:
        if run.rank and run.number == 1 and run.mode in first:
            known = set(_findings(replace(session, runs=(first[run.mode],))))
            for place, what in dict.fromkeys(_findings(replace(session, runs=(run,)))):
                if (place, what) not in known:
                    yield f"{run.mode.value}: in rank {run.rank}, and not in rank 0: {place or 'unknown place'}: {what}"


def _findings(session: Session) -> Iterator[tuple[Place | None, str]]:
    for graph_break in analyse_graph_breaks(session).rows:
        yield graph_break.place, f"graph break, {graph_break.reason}"
    for recompile in analyse_recompiles(session).rows:
        yield recompile.place, f"recompile, {recompile.cause}"
    for wait in analyse_host_syncs(session).rows:
        yield wait.place, f"host wait, {wait.what}"


def _slowest(ranks: list[ProcessRow]) -> Iterator[str]:
    timed = sorted((row.step_time.median.value, row.rank) for row in ranks if row.step_time is not None)
    if len(timed) > 1 and timed[-1][0] > _SLOWER * timed[0][0]:
        times = timed[-1][0] / timed[0][0]
        yield f"{_name(ranks[0])}: rank {timed[-1][1]} is the slowest, {times:.2f}× rank {timed[0][1]}'s time a step"


def _unrepeatable(session: Session) -> Iterator[str]:
    first = {run.mode: run for run in session.runs}
    for run in session.others:
        row = compare_losses(run, first[run.mode]) if not run.rank and run.mode in first else None
        if row is not None and not row.agrees:
            left = f"the losses of run {run.number} leave those of run 1 at step {row.first_difference}"
            yield f"{run.mode.value}: {left}, with the same seed"


def _name(row: ProcessRow) -> str:
    return row.mode.value if row.run == 1 else f"{row.mode.value}, run {row.run}"
