"""Lines of the step at which the script waits for its next batch."""

import statistics
from collections import defaultdict
from dataclasses import dataclass

from tpuport.profile.analyses.advice import INPUT
from tpuport.profile.figures import Figure, time_basis
from tpuport.profile.places import Place, Places
from tpuport.profile.plan import Mode
from tpuport.profile.records import Frame, InputWait, Phase, Step
from tpuport.profile.session import Run, Session

MUCH = 0.05
"""Share of a step above which the wait is worth a change."""


@dataclass(frozen=True, slots=True)
class InputRow:
    """One line that takes batches from a DataLoader, in one mode, by its timed steps."""

    mode: Mode
    place: Place | None
    source: str
    """The line's text."""
    count: float
    """Batches a step."""
    seconds: Figure
    """Median of the steps' waits."""
    share: float
    """Of the median step, from 0 to 1: what would be gained at most."""
    edit: str
    """What to change; empty where the wait is short."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Every mode and line; without rows where no step took a batch from a DataLoader."""

    rows: tuple[InputRow, ...]


def analyse_inputs(session: Session) -> Inputs:
    """Return the waits of each mode, the longest first."""
    rows = (row for run in session.runs for row in _rows(session, run))
    return Inputs(tuple(sorted(rows, key=lambda row: -row.share)))


def _rows(session: Session, run: Run) -> list[InputRow]:
    # A script that ends early has no timed steps; its first step holds the start-up.
    steps = {step.index: step for step in run.records.of(Step) if step.index}
    timed = {index: step for index, step in steps.items() if step.phase is Phase.TIMED} or steps
    waits: defaultdict[Frame | None, dict[int, InputWait]] = defaultdict(dict)
    for wait in run.records.of(InputWait):
        if wait.step in timed:
            waits[wait.frame][wait.step] = wait
    step_time = statistics.median(step.seconds for step in timed.values()) if timed else 0.0
    places = Places(run.records, session.plan.directory)
    rows = []
    for frame, found in waits.items():
        seconds = statistics.median(found[index].seconds if index in found else 0.0 for index in timed)
        place = places.place(frame)
        share = min(1.0, seconds / step_time) if step_time else 0.0
        rows.append(
            InputRow(
                mode=run.mode,
                place=place,
                source=session.sources.at(place),
                count=sum(wait.count for wait in found.values()) / len(timed),
                seconds=Figure(seconds, "s", time_basis(session.plan.device)),
                share=share,
                edit=INPUT.edit if share >= MUCH else "",
            )
        )
    return rows
