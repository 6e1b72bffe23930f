"""Two sessions of one script, before and after a change."""

from collections.abc import Iterator
from dataclasses import dataclass

from tpuport.profile.analyses import Report
from tpuport.profile.figures import Figure


@dataclass(frozen=True, slots=True)
class Change:
    """One figure of one mode, in both sessions."""

    where: str
    """Mode, and chip where it is an estimate for one."""
    what: str
    before: Figure
    after: Figure

    @property
    def ratio(self) -> float | None:
        """After by before; None when there was nothing before."""
        return self.after.value / self.before.value if self.before.value else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed, what is gone, and what is new."""

    changes: tuple[Change, ...]
    """Figures that both sessions have, in the order of the modes."""
    breaks_gone: tuple[str, ...]
    breaks_new: tuple[str, ...]
    recompiles_gone: tuple[str, ...]
    recompiles_new: tuple[str, ...]


def compare(before: Report, after: Report) -> Comparison:
    """Compare two reports. Graph breaks are matched by file, line text and kind, as line numbers move."""
    old, new = dict(_figures(before)), dict(_figures(after))
    changes = (Change(*key, old[key], new[key]) for key in new if key in old)
    breaks = [_breaks(report) for report in (before, after)]
    recompiles = [_recompiles(report) for report in (before, after)]
    return Comparison(
        tuple(changes),
        _only(breaks[0], breaks[1]),
        _only(breaks[1], breaks[0]),
        _only(recompiles[0], recompiles[1]),
        _only(recompiles[1], recompiles[0]),
    )


def _only(these: dict[tuple[str, ...], str], those: dict[tuple[str, ...], str]) -> tuple[str, ...]:
    return tuple(shown for key, shown in these.items() if key not in those)


def _breaks(report: Report) -> dict[tuple[str, ...], str]:
    return {
        (row.place.file if row.place else "", row.source, row.id, row.reason): f"{row.place}  {row.reason}"
        for row in report.graph_breaks.rows
    }


def _recompiles(report: Report) -> dict[tuple[str, ...], str]:
    return {
        (row.place.file if row.place else "", row.source, row.cause): f"{row.place}  {row.cause}"
        for row in report.recompiles.rows
    }


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
