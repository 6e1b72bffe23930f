"""`--fail-on`: limits that a report must keep, for CI."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from tpuport.errors import UsageError
from tpuport.profile.analyses import Report
from tpuport.profile.figures import Figure
from tpuport.profile.plan import Device, Mode

_FORM = re.compile(r"^(?P<name>[a-z-]+)(?:\s*>\s*(?P<limit>\d+))?$")


@dataclass(frozen=True, slots=True)
class Threshold:
    """One limit: the count of `name` may be at most `limit`; a condition that is true or false has the limit 0."""

    name: str
    limit: int = 0


def parse(text: str) -> tuple[Threshold, ...]:
    """Read `graph-breaks>0,recompiles>2,slower,loss-drift`.

    Raises UsageError that names the valid choices.
    """
    found: list[Threshold] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = _FORM.match(part)
        if match is None or match["name"] not in _COUNTS:
            raise UsageError(
                f"--fail-on {part!r} is no limit",
                hint=f"Write NAME or NAME>NUMBER, separated by commas; names are {', '.join(_COUNTS)}.",
            )
        found.append(Threshold(match["name"], int(match["limit"] or 0)))
    return tuple(found)


def exceeded(thresholds: tuple[Threshold, ...], report: Report, device: Device) -> tuple[str, ...]:
    """Return what is beyond its limit, one text each; a session in which the script failed keeps no limit."""
    broken: list[str] = []
    if thresholds and not report.modes.measured:
        broken.append("cannot be judged: the script failed in eager mode or in all modes")
    for threshold in thresholds:
        what = _COUNTS[threshold.name](report, device)
        if len(what) > threshold.limit:
            shown = ", ".join(what[:3]) + (", …" if len(what) > 3 else "")
            broken.append(f"{threshold.name}: {len(what)}, at most {threshold.limit} allowed ({shown})")
    return tuple(broken)


def _graph_breaks(report: Report, _device: Device) -> list[str]:
    return [f"{row.place or 'unknown place'} {row.reason}" for row in report.graph_breaks.rows]


def _recompiles(report: Report, _device: Device) -> list[str]:
    rows = report.recompiles.rows
    return [f"{row.place or 'unknown place'} {row.cause}" for row in rows for _ in range(row.count)]


def _host_syncs(report: Report, _device: Device) -> list[str]:
    return [f"{row.place or 'unknown place'} {row.what}" for row in report.host_syncs.rows]


def _loss_drift(report: Report, _device: Device) -> list[str]:
    return [f"{row.mode.value} from step {row.first_difference}" for row in report.losses.rows if not row.agrees]


def _failed_modes(report: Report, _device: Device) -> list[str]:
    return [f"{row.mode.value}: {row.failure.what}" for row in report.modes.rows if row.failure]


def _slower(report: Report, device: Device) -> list[str]:
    """Name the modes that lose against eager, by what says it: time on a device, estimated time, or executions."""
    slower: list[str] = []
    for name, values in _speeds(report, device).items():
        eager = values.pop(Mode.EAGER, None)
        if eager is None:
            continue
        for mode, figure in values.items():
            if figure.value > eager.value:
                slower.append(f"{mode.value}: {figure.value / eager.value:.2f}× eager's {name} ({figure.basis.value})")
    return slower


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


_COUNTS: dict[str, Callable[[Report, Device], list[str]]] = {
    "graph-breaks": _graph_breaks,
    "recompiles": _recompiles,
    "host-syncs": _host_syncs,
    "loss-drift": _loss_drift,
    "slower": _slower,
    "failed-modes": _failed_modes,
    "over-memory": _over_memory,
    "refused-programs": _refused,
}
NAMES = tuple(_COUNTS)
"""What can be limited."""
