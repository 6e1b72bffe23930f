"""How each mode ended, and how long its steps took."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tpuport.profile.analyses.failures import Failure, failure, first_line
from tpuport.profile.analyses.new_programs import new_in_every_step
from tpuport.profile.figures import Figure, time_basis
from tpuport.profile.places import Place, Places
from tpuport.profile.plan import Device, Mode, Plan
from tpuport.profile.records import (
    NO_TRACE,
    WARMUP_LIMIT,
    Ended,
    Note,
    Phase,
    Step,
    StepSourceChosen,
    StoodIn,
    Traced,
    UserCompile,
)
from tpuport.profile.session import Run, Session

_SHOWN_NEW = 4
"""Operations compiled anew in every step that are named."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """Wall-clock time of a step: the median of `steps` steps, and their extremes, over all runs of the mode."""

    median: Figure
    lowest: Figure
    highest: Figure
    steps: int


@dataclass(frozen=True, slots=True)
class Remark:
    """Something to know about a mode's figures."""

    text: str
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class StandIn:
    """What the emulation stood in for."""

    what: str
    how: str
    place: Place | None
    """The user's line that was the first to use it, if one did."""


@dataclass(frozen=True, slots=True)
class ModeRow:
    """One mode."""

    mode: Mode
    failure: Failure | None
    """None when the script ended well, with at least one step."""
    step_time: StepTime | None
    """None for a mode that failed, and where no step but the first ended."""
    steps: int
    """All steps that ended, warm-up included."""
    warmup_steps: int
    step_source: str
    """What ends a step: `optimizer` or `call`, or nothing when there was no step."""
    step_name: str
    """Class of that optimizer or model."""
    remarks: tuple[Remark, ...]
    stand_ins: tuple[StandIn, ...]
    unknown_records: int
    damaged_records: int


@dataclass(frozen=True, slots=True)
class Modes:
    """Every mode that was run, in the order of the plan."""

    rows: tuple[ModeRow, ...]

    @property
    def measured(self) -> bool:
        """Whether the script ran well: in eager mode, if that was asked for, and in one mode at least."""
        eager_failed = any(row.mode is Mode.EAGER and row.failure for row in self.rows)
        return not eager_failed and any(row.failure is None for row in self.rows)


def analyse_modes(session: Session) -> Modes:
    """Return one row for each mode that was run."""
    return Modes(tuple(_row(session, run) for run in session.runs))


def step_time_of(runs: Iterable[Run], device: Device) -> StepTime | None:
    """Return the time of a step over the steps of all `runs`; None when none has one that can be used."""
    used = (step for run in runs for step in _steps_to_use(run.records.of(Step))[0])
    return _step_time(tuple(used), device)


def _row(session: Session, run: Run) -> ModeRow:
    plan = session.plan
    others = [other for other in session.others if other.mode is run.mode]
    records = run.records
    places = Places(records, plan.directory)
    steps = records.of(Step)
    used, remark = _steps_to_use(steps)
    notes = records.of(Note)
    remarks = [Remark(note.text, places.place(note.frame)) for note in notes]
    why = _first_failure(plan, [run, *others])
    if remark and steps and why is None:
        remarks.append(Remark(remark))
    remarks += _remarks(run, places, used)
    remarks += _never_settled(session, run)
    if why is None and plan.traced and not records.of(Traced) and all(note.code != NO_TRACE for note in notes):
        remarks.append(Remark("no trace: the script ended before the steps that were to be traced"))
    source = records.last(StepSourceChosen)
    return ModeRow(
        mode=run.mode,
        failure=why,
        step_time=None if why else step_time_of((run, *(other for other in others if not other.rank)), plan.device),
        steps=len(steps),
        warmup_steps=sum(step.phase is Phase.WARMUP for step in steps),
        step_source=source.source if source else "",
        step_name=source.name if source else "",
        remarks=tuple(remarks),
        stand_ins=tuple(StandIn(item.what, item.how, places.place(item.frame)) for item in records.of(StoodIn)),
        unknown_records=records.unknown,
        damaged_records=records.damaged,
    )


def _first_failure(plan: Plan, runs: list[Run]) -> Failure | None:
    """Return the failure that came first: when a rank fails, its peers fail for want of it."""
    for run in sorted(runs, key=lambda run: (run.number, run.exit.seconds)):
        why = failure(plan, run)
        if why is not None:
            names = [f"run {run.number}"] * (run.number > 1) + [f"rank {run.rank}"] * (plan.ranks is not None)
            return replace(why, what=": ".join((*names, why.what)))
    return None


def _steps_to_use(steps: tuple[Step, ...]) -> tuple[tuple[Step, ...], str]:
    """Return the steps whose times count, and what has to be said of the choice. The first step holds the start-up."""
    if timed := tuple(step for step in steps if step.phase is Phase.TIMED):
        return timed, ""
    later = steps[1:]
    if calm := tuple(step for step in later if not step.compiled):
        return calm, f"the script ended after {len(steps)} steps: the times are of steps meant for warm-up or counting"
    if later:
        return later, f"the script ended after {len(steps)} steps, all of which compiled: the times include compilation"
    return (), "the script ended after one step, which holds the start-up: it has no step time"


def _step_time(steps: tuple[Step, ...], device: Device) -> StepTime | None:
    if not steps:
        return None
    basis = time_basis(device)
    seconds = [step.seconds for step in steps]
    return StepTime(
        median=Figure(statistics.median(seconds), "s", basis),
        lowest=Figure(min(seconds), "s", basis),
        highest=Figure(max(seconds), "s", basis),
        steps=len(seconds),
    )


def _remarks(run: Run, places: Places, used: tuple[Step, ...]) -> list[Remark]:
    records = run.records
    remarks: list[Remark] = []
    compiling = [step for step in used if step.phase is Phase.TIMED and step.compiled]
    if compiling:
        remarks.append(Remark(f"{len(compiling)} of the {len(used)} timed steps compiled new programs"))
    ended = records.last(Ended)
    if ended is not None and ended.how == "exit" and ended.code and records.of(Step):
        remarks.append(Remark(f"the script called sys.exit({ended.code})", places.place(ended.frame)))
    if run.failed_execution and (ended is None or ended.how != "raised"):
        remarks.append(Remark(f"an execution failed, and the script went on: {first_line(run.failed_execution)}"))
    user_compiles = records.of(UserCompile)
    if user_compiles and not run.mode.compiles:
        remarks.append(
            Remark(
                "the script's own torch.compile is passed through in this mode", places.place(user_compiles[0].frame)
            )
        )
    return remarks


def _never_settled(session: Session, run: Run) -> list[Remark]:
    # A fused program differs now and then from the one of the step before: that settles.
    settled = all(note.code != WARMUP_LIMIT for note in run.records.of(Note))
    spots = [] if settled else new_in_every_step(session, run)
    if not spots:
        return []
    named = ", ".join(f"`{operation}` at {place}" for place, operation in spots[:_SHOWN_NEW])
    more = f" and {len(spots) - _SHOWN_NEW} more" if len(spots) > _SHOWN_NEW else ""
    return [
        Remark(
            f"compiled anew in every step: {named}{more}. A slice with other bounds, another size or another Python "
            "number makes another program: slice before the move to the device, pad, or pass the number as a tensor."
        )
    ]
