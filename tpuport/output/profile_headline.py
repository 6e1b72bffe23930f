"""The report in a few words: what a reader should know before any table."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tpuport.output.profile_units import change, duration, percent
from tpuport.output.style import count
from tpuport.profile.analyses import Report
from tpuport.profile.analyses.failures import Failure
from tpuport.profile.comparison import Comparison, Kind
from tpuport.profile.plan import Device, Mode

_MANY_UNKNOWN = 0.05
"""Share of kernels without an estimate above which a chip's time may be well below what it would take."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One of them; `bad` is what has to be looked at before the rest is believed."""

    title: str
    value: str
    detail: str = ""
    bad: bool = False


@dataclass(frozen=True, slots=True)
class SharedFailure:
    """A failure with every mode that it befell in the same way."""

    modes: tuple[Mode, ...]
    failure: Failure

    @property
    def named(self) -> str:
        """The modes, as the subject of a sentence."""
        names = [mode.value for mode in self.modes]
        return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def failures(report: Report) -> list[SharedFailure]:
    """Return what failed, each failure once."""
    found: dict[Failure, list[Mode]] = {}
    for row in report.modes.rows:
        if row.failure is not None:
            found.setdefault(row.failure, []).append(row.mode)
    return [SharedFailure(tuple(modes), failure) for failure, modes in found.items()]


def compiles(report: Report) -> bool:
    """Return whether a mode that compiles was measured, so that a missing graph break says something."""
    return any(row.mode.compiles and row.failure is None for row in report.modes.rows)


def comparable(report: Report) -> list[Mode]:
    """Return the modes that ran well and compute what the reference does, in the order of the plan."""
    differing = {row.mode for row in report.losses.rows if not row.is_comparable}
    return [row.mode for row in report.modes.rows if row.failure is None and row.mode not in differing]


def headline(report: Report, device: Device) -> list[Fact]:
    """Return the facts; those of which nothing is known are left out."""
    facts: list[Callable[[Report, Device], Iterator[Fact]]] = [
        _executions, _times, _chips, _losses, _graph_breaks, _recompiles, _host_syncs,
    ]  # fmt: skip
    return [fact for function in facts for fact in function(report, device)]


def _executions(report: Report, _device: Device) -> Iterator[Fact]:
    known = {row.mode: row.executions for row in report.programs.rows}
    counts = {mode: found.value for mode in comparable(report) if (found := known[mode])}
    title = "executions a step"
    eager = counts.pop(Mode.EAGER, None)
    if not counts:
        if eager is not None:
            yield Fact(title, f"{eager:g}", "eager")
        return
    best = min(counts, key=lambda mode: counts[mode])
    if eager:
        detail = f"{best.value} against eager: {change(counts[best] / eager)}"
        yield Fact(title, f"{eager:g} → {counts[best]:g}", detail)
    else:
        yield Fact(title, f"{counts[best]:g}", best.value)


def _times(report: Report, device: Device) -> Iterator[Fact]:
    """A time says something on a device that is not emulated."""
    if device is Device.EMULATED_TPU:
        return
    known = {row.mode: row.step_time.median for row in report.modes.rows if row.step_time}
    times = {mode: known[mode] for mode in comparable(report) if mode in known}
    if not times:
        return
    best = min(times, key=lambda mode: times[mode].value)
    detail = f"{best.value}, {times[best].basis.value}"
    eager = times.get(Mode.EAGER)
    if eager and best is not Mode.EAGER and times[best].value:
        detail += f": {eager.value / times[best].value:.2f}× as fast as eager"
    yield Fact("time a step", duration(times[best].value), detail)


def _chips(report: Report, _device: Device) -> Iterator[Fact]:
    comparables = comparable(report)
    for chip in dict.fromkeys(row.chip for row in report.chips.rows):
        rows = {row.mode: row for row in report.chips.rows if row.chip == chip and row.mode in comparables}
        if not rows:
            continue
        best = min(rows.values(), key=lambda row: row.time.value)
        eager = rows.get(Mode.EAGER)
        detail = f"{best.mode.value}, estimated"
        if eager is not None and best is not eager and best.time.value:
            detail += f": {eager.time.value / best.time.value:.2f}× as fast as eager"
        unknown = sum(best.unestimated.values()) / best.kernels.value if best.kernels.value else 0.0
        if unknown > _MANY_UNKNOWN:
            detail += f"; {percent(unknown)} of its kernels have no estimate"
        if not best.fits:
            detail += "; does not fit into its memory"
        yield Fact(f"a step on {chip}", duration(best.time.value), detail, not best.fits)


def _losses(report: Report, _device: Device) -> Iterator[Fact]:
    rows = report.losses.rows
    if not rows or report.losses.reference is None:
        return
    wrong = [row.mode.value for row in rows if not row.agrees]
    reference = report.losses.reference.value
    if wrong:
        yield Fact("losses", "differ", f"{', '.join(wrong)} from {reference}", bad=True)
    else:
        yield Fact("losses", "agree", f"{', '.join(row.mode.value for row in rows)} with {reference}")


def _graph_breaks(report: Report, _device: Device) -> Iterator[Fact]:
    rows = report.graph_breaks.rows
    if rows or compiles(report):
        graphs = sum(row.graphs for row in rows)
        yield Fact("graph breaks", f"{len(rows)}", f"+{count(graphs, 'graph')}" if graphs else "")


def _recompiles(report: Report, _device: Device) -> Iterator[Fact]:
    found = report.recompiles
    if not found.rows and not found.limits and not compiles(report):
        return
    lost = sum(row.seconds.value for row in found.rows)
    detail = f"{duration(lost)} lost ({found.rows[0].seconds.basis.value})" if lost else ""
    if found.limits:
        detail = "the limit was reached: what follows runs eagerly"
    yield Fact("recompiles", f"{sum(row.count for row in found.rows)}", detail, bool(found.limits))


def _host_syncs(report: Report, _device: Device) -> Iterator[Fact]:
    if report.host_syncs.counted:
        waits = sum(row.count for row in report.host_syncs.rows)
        lines = len(report.host_syncs.rows)
        yield Fact("host waits a step", f"{waits:g}", f"at {count(lines, 'line')}" if lines else "")


def comparison_headline(comparison: Comparison) -> list[Fact]:
    """Return what two sessions differ in, in a few words: what is found, and the executions of each mode."""
    facts = [_found(kind, comparison) for kind in Kind]
    for item in comparison.changes:
        if item.what == "executions a step":
            detail = item.where if item.ratio is None else f"{item.where}: {change(item.ratio)}"
            facts.append(Fact(item.what, _from_to(item.before.value, item.after.value), detail))
    return facts


def _found(kind: Kind, comparison: Comparison) -> Fact:
    found = [finding for finding in comparison.findings if finding.kind is kind]
    before, after = sum(item.before for item in found), sum(item.after for item in found)
    when = "a step" if kind is Kind.HOST_WAIT else "in the run"
    return Fact(f"{kind.value}s", _from_to(before, after), when, bad=after > before)


def _from_to(before: float, after: float) -> str:
    return f"{after:g}" if before == after else f"{before:g} → {after:g}"
