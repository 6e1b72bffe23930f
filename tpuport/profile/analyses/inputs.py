"""Lines of the step at which the script waits for its next batch."""

import statistics
from collections import defaultdict
from dataclasses import dataclass

from tpuport.profile.analyses.advice import BEFORE_MODEL, INPUT
from tpuport.profile.figures import Figure, time_basis
from tpuport.profile.places import Place, Places
from tpuport.profile.plan import Mode
from tpuport.profile.records import BeforeModel, Frame, InputWait, Phase, Step
from tpuport.profile.session import Run, Session

MUCH = 0.05
"""Share of a step above which the wait is worth a change."""
_MUCH_BEFORE = 0.1
"""The same of all that passes before the first call of a model: some of it has to be there."""
LOADER = "the next batch of a DataLoader"
BEFORE = "what comes before the first call of a model"


@dataclass(frozen=True, slots=True)
class InputRow:
    """One line that waits for input, in one mode, by its timed steps."""

    mode: Mode
    what: str
    """`the next batch of a DataLoader`, or `what comes before the first call of a model`, at the line of this call."""
    place: Place | None
    source: str
    """The line's text."""
    count: float
    """Batches, or calls, a step."""
    seconds: Figure
    """Median of the steps' waits."""
    share: float
    """Of the median step, from 0 to 1: what would be gained at most."""
    edit: str
    """What to change; empty where the wait is short."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Every mode and line."""

    rows: tuple[InputRow, ...]


def analyse_inputs(session: Session) -> Inputs:
    """Return the waits of each mode, the longest first."""
    rows = (row for run in session.runs for row in _rows(session, run))
    return Inputs(tuple(sorted(rows, key=lambda row: -row.share)))


def _rows(session: Session, run: Run) -> list[InputRow]:
    # A script that ends early has no timed steps; its first step holds the start-up.
    steps = {step.index: step for step in run.records.of(Step) if step.index}
    timed = {index: step for index, step in steps.items() if step.phase is Phase.TIMED} or steps
    waits: defaultdict[tuple[str, Frame | None], dict[int, tuple[int, float]]] = defaultdict(dict)
    for wait in run.records.of(InputWait):
        if wait.step in timed:
            waits[LOADER, wait.frame][wait.step] = wait.count, wait.seconds
    for before in run.records.of(BeforeModel):
        if before.step in timed:
            waits[BEFORE, before.frame][before.step] = 1, before.seconds
    step_time = statistics.median(step.seconds for step in timed.values()) if timed else 0.0
    places = Places(run.records, session.plan.directory)
    rows = []
    for (what, frame), found in waits.items():
        seconds = statistics.median(found[index][1] if index in found else 0.0 for index in timed)
        place = places.place(frame)
        share = min(1.0, seconds / step_time) if step_time else 0.0
        advice, much = (INPUT, MUCH) if what == LOADER else (BEFORE_MODEL, _MUCH_BEFORE)
        rows.append(
            InputRow(
                mode=run.mode,
                what=what,
                place=place,
                source=session.sources.at(place),
                count=sum(count for count, _ in found.values()) / len(timed),
                seconds=Figure(seconds, "s", time_basis(session.plan.device)),
                share=share,
                edit=advice.edit if share >= much else "",
            )
        )
    return rows
