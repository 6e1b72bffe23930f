"""Limits that a report must keep, for CI: `--fail-on` and the `budgets` of the settings.

A limit that nothing was measured for is not kept: a gate that stays green because a mode failed guards nothing.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tpuport.config import Config
from tpuport.errors import ConfigError, UsageError
from tpuport.nearest import did_you_mean
from tpuport.profile.analyses import Report
from tpuport.profile.analyses.numbers import Verdict
from tpuport.profile.figures import Figure
from tpuport.profile.plan import Device, Mode

OPTION = "--fail-on"
SETTING = "budgets"
_FORM = re.compile(r"^(?P<name>[a-z-]+)(?:\s*>\s*(?P<limit>\d+))?$")
_FAILED_MODES = "failed-modes"


@dataclass(frozen=True, slots=True)
class Threshold:
    """One limit: the count of `name` may be at most `limit`; a condition that is true or false has the limit 0."""

    name: str
    limit: int = 0
    origin: str = OPTION
    """Where it was set, as messages name it."""


def parse(text: str) -> tuple[Threshold, ...]:
    """Read the `graph-breaks>0,recompiles>2,slower,loss-drift` of `--fail-on`.

    Raises UsageError that names the valid choices.
    """
    parts = [part.strip() for part in text.split(",")]
    try:
        return tuple(_threshold(part, OPTION) for part in parts if part)
    except _NoLimit as error:
        raise UsageError(str(error), hint=_HINT) from None


def budgets(settings: Config) -> tuple[Threshold, ...]:
    """Read the limits of the settings.

    Raises ConfigError that names the place and the valid choices.
    """
    origin = f"{settings.origins.get(SETTING, '')}: `{SETTING}`"
    try:
        return tuple(_threshold(part.strip(), origin) for part in settings.budgets)
    except _NoLimit as error:
        raise ConfigError(str(error), hint=_HINT) from None


def in_force(limits: Iterable[Threshold], overriding: Iterable[Threshold]) -> tuple[Threshold, ...]:
    """Return both, without those of `limits` that `overriding` sets anew.

    Where there is any limit, no mode may have failed, unless `failed-modes` says how many may.
    """
    named = {item.name: item for item in (*limits, *overriding)}
    if named and _FAILED_MODES not in named:
        named[_FAILED_MODES] = Threshold(_FAILED_MODES, 0, next(iter(named.values())).origin)
    return tuple(named.values())


def exceeded(thresholds: tuple[Threshold, ...], report: Report, device: Device) -> tuple[str, ...]:
    """Return what is beyond its limit or can't be judged, one text each."""
    broken: list[str] = []
    for item in thresholds:
        criterion = _CRITERIA[item.name]
        if why := criterion.unjudged(report, device):
            broken.append(f"{item.origin} {item.name}: cannot be judged, as {why}")
        what = criterion.found(report, device)
        if len(what) > item.limit:
            named = [name if times == 1 else f"{times}× {name}" for name, times in Counter(what).items()]
            shown = ", ".join(named[:3]) + (", …" if len(named) > 3 else "")
            broken.append(f"{item.origin} {item.name}: {len(what)}, at most {item.limit} allowed ({shown})")
    return tuple(broken)


class _NoLimit(ValueError):
    """A text that is no limit."""


def _threshold(text: str, origin: str) -> Threshold:
    match = _FORM.match(text)
    if match is None:
        raise _NoLimit(f"{origin}: {text!r} is no limit")
    if match["name"] not in _CRITERIA:
        raise _NoLimit(f"{origin}: unknown limit {match['name']!r}{did_you_mean(match['name'], _CRITERIA)}")
    return Threshold(match["name"], int(match["limit"] or 0), origin)


def _graph_breaks(report: Report, _device: Device) -> list[str]:
    return [f"{row.place or 'unknown place'} {row.reason}" for row in report.graph_breaks.rows]


def _recompiles(report: Report, _device: Device) -> list[str]:
    rows = report.recompiles.rows
    return [f"{row.place or 'unknown place'} {row.cause}" for row in rows for _ in range(row.count)]


def _not_compiled(report: Report, _device: Device) -> str:
    compiled = any(row.mode.compiles and row.failure is None for row in report.modes.rows)
    return "" if compiled else "no compiled mode was measured"


def _host_syncs(report: Report, _device: Device) -> list[str]:
    return [f"{row.place or 'unknown place'} {row.what}" for row in report.host_syncs.rows]


def _host_syncs_not_counted(report: Report, device: Device) -> str:
    if not device.is_tpu:
        return f"host waits are counted on a TPU and an emulated one, and the device is {device.value}"
    return "" if report.host_syncs.counted else "no step was counted"


def _loss_drift(report: Report, _device: Device) -> list[str]:
    return [f"{row.mode.value} from step {row.first_difference}" for row in report.losses.rows if not row.agrees]


def _losses_not_compared(report: Report, _device: Device) -> str:
    return "" if report.losses.rows else "losses of fewer than two modes were seen"


def _number_drift(report: Report, _device: Device) -> list[str]:
    return [f"{row.mode} against {row.reference}" for row in report.numbers.rows if row.verdict is Verdict.DIFFERS]


def _numbers_not_compared(report: Report, _device: Device) -> str:
    if not report.numbers.checked_steps:
        return "numbers are compared with --check-numbers only"
    if any(row.verdict is Verdict.INCOMPARABLE for row in report.numbers.rows):
        return "some numbers can't be compared"
    return "" if report.numbers.rows and report.numbers.reference_failure is None else "the run on the CPU failed"


def _failed_modes(report: Report, _device: Device) -> list[str]:
    return [f"{row.mode.value}: {row.failure.what}" for row in report.modes.rows if row.failure]


def _nothing_measured(report: Report, _device: Device) -> str:
    return "" if report.modes.measured else "the script failed in eager mode or in all modes"


def _slower(report: Report, device: Device) -> list[str]:
    """Name the modes that lose against eager, by what says it: time on a device, estimated time, or executions."""
    slower: list[str] = []
    for name, values in _speeds(report, device).items():
        eager = values.get(Mode.EAGER)
        if eager is None:
            continue
        for mode, figure in values.items():
            if figure.value > eager.value:
                slower.append(f"{mode.value}: {figure.value / eager.value:.2f}× eager's {name} ({figure.basis.value})")
    return slower


def _speed_not_compared(report: Report, device: Device) -> str:
    speeds = _speeds(report, device).values()
    compared = all(Mode.EAGER in values and len(values) > 1 for values in speeds)
    return "" if speeds and compared else "there is nothing to compare: it takes eager and another mode"


def _speeds(report: Report, device: Device) -> dict[str, dict[Mode, Figure]]:
    if device is not Device.EMULATED_TPU:
        return {"time a step": {row.mode: row.step_time.median for row in report.modes.rows if row.step_time}}
    if report.chips.rows:
        speeds: dict[str, dict[Mode, Figure]] = {}
        for row in report.chips.rows:
            speeds.setdefault(f"time a step on {row.chip}", {})[row.mode] = row.time
        return speeds
    return {"executions a step": {row.mode: row.executions for row in report.programs.rows if row.executions}}


def _over_memory(report: Report, _device: Device) -> list[str]:
    return [f"{row.mode.value} on {row.chip}" for row in report.chips.rows if not row.fits]


def _refused(report: Report, _device: Device) -> list[str]:
    return [f"{item.program[:12]} on {row.chip}" for row in report.chips.rows for item in row.refused]


def _no_chip(report: Report, _device: Device) -> str:
    return "" if report.chips.rows else "nothing was compiled for a chip: add --chip"


@dataclass(frozen=True, slots=True)
class _Criterion:
    """What can be limited: names what counts against the limit, and why that can't be known, if it can't."""

    found: Callable[[Report, Device], list[str]]
    unjudged: Callable[[Report, Device], str]


_CRITERIA = {
    "graph-breaks": _Criterion(_graph_breaks, _not_compiled),
    "recompiles": _Criterion(_recompiles, _not_compiled),
    "host-syncs": _Criterion(_host_syncs, _host_syncs_not_counted),
    "loss-drift": _Criterion(_loss_drift, _losses_not_compared),
    "number-drift": _Criterion(_number_drift, _numbers_not_compared),
    "slower": _Criterion(_slower, _speed_not_compared),
    _FAILED_MODES: _Criterion(_failed_modes, _nothing_measured),
    "over-memory": _Criterion(_over_memory, _no_chip),
    "refused-programs": _Criterion(_refused, _no_chip),
}
NAMES = tuple(_CRITERIA)
"""What can be limited."""
_HINT = f"Write NAME or NAME>NUMBER; names are {', '.join(NAMES)}."
