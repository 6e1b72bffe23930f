"""Two sessions of one script, before and after a change."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from tpuport.profile.analyses import Report
from tpuport.profile.figures import Figure
from tpuport.profile.places import Place
from tpuport.profile.plan import Mode, Plan


@dataclass(frozen=True, slots=True)
class Change:
    """One figure of one mode, in both sessions; of all these figures less is better."""

    where: str
    """Mode, and chip where it is an estimate for one."""
    what: str
    before: Figure
    after: Figure

    @property
    def ratio(self) -> float | None:
        """After by before; None when there was nothing before."""
        return self.after.value / self.before.value if self.before.value else None


class Kind(StrEnum):
    """What a report finds at a line."""

    GRAPH_BREAK = "graph break"
    RECOMPILE = "recompile"
    HOST_WAIT = "host wait"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something found at a line in one session or in both."""

    kind: Kind
    what: str
    place: Place | None
    """Where it is after the change; where it was, if it is gone."""
    source: str
    """The line's text."""
    before: float
    """How often: graph breaks and recompiles in the whole run, host waits in a step."""
    after: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed."""

    remarks: tuple[str, ...]
    """What makes the two sessions less than comparable, and modes that failed in one of them."""
    changes: tuple[Change, ...]
    """Figures that both sessions have, in the order of the modes."""
    findings: tuple[Finding, ...]
    """What either session found, kind by kind."""


def compare(before: Report, after: Report, plans: tuple[Plan, Plan]) -> Comparison:
    """Compare two reports; `plans` are those of their sessions.

    Graph breaks and host waits are matched by file, line text and kind, as line numbers move; recompiles by their
    cause, as a graph break that is gone moves them to another frame.
    """
    old, new = dict(_figures(before)), dict(_figures(after))
    changes = (Change(*key, old[key], new[key]) for key in new if key in old)
    findings = (_matched(kind, find(before), find(after)) for kind, find in _FINDERS.items())
    remarks = (*_other_plans(*plans), *_other_failures(before, after))
    return Comparison(remarks, tuple(changes), tuple(finding for found in findings for finding in found))


@dataclass(slots=True)
class _Found:
    what: str
    place: Place | None
    source: str
    count: float = 0.0


_ByKey = dict[tuple[str, ...], _Found]


def _matched(kind: Kind, before: _ByKey, after: _ByKey) -> Iterator[Finding]:
    for key in dict.fromkeys((*before, *after)):
        old, new = before.get(key), after.get(key)
        shown = new or old
        assert shown is not None
        yield Finding(kind, shown.what, shown.place, shown.source, old.count if old else 0.0, new.count if new else 0.0)


def _graph_breaks(report: Report) -> _ByKey:
    found: _ByKey = {}
    for row in report.graph_breaks.rows:
        key = (_file(row.place), row.source, row.id, row.reason)
        found.setdefault(key, _Found(row.reason, row.place, row.source)).count += row.count
    return found


def _recompiles(report: Report) -> _ByKey:
    found: _ByKey = {}
    for row in report.recompiles.rows:
        found.setdefault((row.cause,), _Found(row.cause, row.place, row.source)).count += row.count
    return found


def _host_waits(report: Report) -> _ByKey:
    found: _ByKey = {}
    for row in report.host_syncs.rows:
        key = (_file(row.place), row.source, row.what)
        found.setdefault(key, _Found(row.what, row.place, row.source)).count += row.count
    return found


_FINDERS: dict[Kind, Callable[[Report], _ByKey]] = {
    Kind.GRAPH_BREAK: _graph_breaks,
    Kind.RECOMPILE: _recompiles,
    Kind.HOST_WAIT: _host_waits,
}


def _file(place: Place | None) -> str:
    return place.file if place else ""


def _other_plans(before: Plan, after: Plan) -> Iterator[str]:
    named = {
        "device": (before.device.value, after.device.value),
        "script": (before.script_as_given, after.script_as_given),
        "arguments": (" ".join(before.arguments), " ".join(after.arguments)),
    }
    for name, (old, new) in named.items():
        if old != new:
            yield f"not the same {name}: {old or 'none'} before, {new or 'none'} after"


def _other_failures(before: Report, after: Report) -> Iterator[str]:
    old, new = _outcomes(before), _outcomes(after)
    for mode in dict.fromkeys((*old, *new)):
        was, is_ = old.get(mode, "was not run"), new.get(mode, "was not run")
        if was != is_:
            yield f"{mode.value} {was} before, and {is_} after"
        elif was != _RAN:
            yield f"{mode.value} {was} before and after"


_RAN = "ran well"


def _outcomes(report: Report) -> dict[Mode, str]:
    return {row.mode: _RAN if row.failure is None else "failed" for row in report.modes.rows}


def _figures(report: Report) -> Iterator[tuple[tuple[str, str], Figure]]:
    for mode, programs in zip(report.modes.rows, report.programs.rows, strict=True):
        named = {
            "executions a step": programs.executions,
            "programs a step": programs.distinct,
            "graphs": programs.graphs,
            "time a step": mode.step_time.median if mode.step_time else None,
            "compile time": programs.dynamo_time,
        }
        yield from (((mode.mode.value, what), figure) for what, figure in named.items() if figure is not None)
    for row in report.chips.rows:
        where = f"{row.mode.value} on {row.chip}"
        yield (where, "time a step"), row.time
        yield (where, "boundary bytes"), row.boundary
        yield (where, "peak memory"), row.peak
