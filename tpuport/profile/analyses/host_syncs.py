"""Lines of the step at which the host waits for the device."""

from collections import defaultdict
from dataclasses import dataclass

from tpuport.checks.dynamic_shape import FUNCTIONS
from tpuport.profile.analyses.advice import (
    HOST_COPY,
    HOST_INDEX,
    HOST_PRINT,
    HOST_READ,
    HOST_SAVE,
    HOST_SELECTION,
    HOST_SIZE,
    Advice,
    inside_library,
)
from tpuport.profile.figures import Figure, time_basis
from tpuport.profile.places import Place, Places, library_place
from tpuport.profile.plan import Mode
from tpuport.profile.records import INDEXING, HostSync, Phase, Step
from tpuport.profile.session import Session


@dataclass(frozen=True, slots=True)
class HostSyncRow:
    """One way to wait at one line. With several modes, count and time are those of the mode with the most."""

    place: Place | None
    what: str
    """How: `.item()`, `bool()`, `print`, …, and where in an installed package, if it is not the user's line."""
    count: float
    """Times a step."""
    seconds: Figure | None
    """Time a step, the wait for the device included; None where only the copy to the host was seen."""
    source: str
    """The line's text."""
    edit: str
    """What to change."""
    rule: str
    """Name of the lint rule that finds such lines."""
    modes: tuple[Mode, ...]


@dataclass(frozen=True, slots=True)
class HostSyncs:
    """Every such line, in the order of the source; `counted` says whether any step was watched."""

    counted: bool
    rows: tuple[HostSyncRow, ...]


_SELECTIONS = {name.rpartition(".")[2] for name in FUNCTIONS} | {"where"}
"""Operations whose result's size depends on values, which lint knows."""
_SIZES = {"one_hot", "repeat_interleave", "bincount"}
"""Those that take the size as an argument."""

_Key = tuple[Place | None, str, Place | None]
"""The user's line, the way to wait, and the line of an installed package that does it."""


def analyse_host_syncs(session: Session) -> HostSyncs:
    """Return one row a line and way."""
    found: defaultdict[_Key, dict[Mode, tuple[float, float | None]]] = defaultdict(dict)
    counted = False
    for run in session.runs:
        steps = sum(step.phase is Phase.COUNTED for step in run.records.of(Step))
        counted = counted or bool(steps)
        places = Places(run.records, session.plan.directory)
        for record in run.records.of(HostSync):
            by_mode = found[places.place(record.frame), record.what, library_place(record.inner)]
            count, seconds = by_mode.get(run.mode, (0.0, None))
            if record.seconds is not None:
                seconds = (seconds or 0.0) + record.seconds / max(1, steps)
            by_mode[run.mode] = count + record.count / max(1, steps), seconds
    rows = (_row(session, key, by_mode) for key, by_mode in found.items())
    return HostSyncs(
        counted, tuple(sorted(rows, key=lambda row: (str(row.place and row.place.file), _line(row), row.what)))
    )


def _line(row: HostSyncRow) -> int:
    return row.place.line if row.place else 0


def _row(session: Session, key: _Key, by_mode: dict[Mode, tuple[float, float | None]]) -> HostSyncRow:
    place, what, library = key
    advice = _advice(what)
    times = [seconds for _, seconds in by_mode.values() if seconds is not None]
    if library is not None:
        advice = inside_library(advice, library)
        what = f"{what} in {library.function} ({library})"
    return HostSyncRow(
        place=place,
        what=what,
        count=max(count for count, _ in by_mode.values()),
        seconds=Figure(max(times), "s", time_basis(session.plan.device)) if times else None,
        source=session.sources.at(place),
        edit=advice.edit,
        rule=advice.rule,
        modes=tuple(by_mode),
    )


def _advice(what: str) -> Advice:
    name = what.removesuffix("()").rpartition(".")[2]
    if what == "print":
        return HOST_PRINT
    if what == INDEXING:
        return HOST_INDEX
    if name in _SELECTIONS:
        return HOST_SELECTION
    if name in _SIZES:
        return HOST_SIZE
    if name == "save":
        return HOST_SAVE
    return HOST_COPY if "CPU" in what or name == "cpu" else HOST_READ
