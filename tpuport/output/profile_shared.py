"""What every format of the profile report chooses and words alike."""

from collections import Counter
from collections.abc import Iterator, Sequence

from tpuport.output.profile_headline import comparable
from tpuport.output.profile_units import plain
from tpuport.output.style import count
from tpuport.profile.analyses import Report
from tpuport.profile.analyses.chips import ChipReport, ChipRow
from tpuport.profile.analyses.fusion import FusionRow
from tpuport.profile.analyses.lines import LineRow, LineTable
from tpuport.profile.analyses.processes import Processes
from tpuport.profile.analyses.traces import Traces
from tpuport.profile.comparison import Comparison, Finding, Kind
from tpuport.profile.layout import KINETO_TRACE, TRACES
from tpuport.profile.places import Place
from tpuport.profile.plan import Device, Plan

_LESS_KNOWN = 0.05
"""Share of a step by which two modes may differ in what no line is known of, and count as alike."""
_NAMED_KERNELS = 4
DEVICE_NAMES = {
    Device.TPU: "TPU",
    Device.EMULATED_TPU: "emulated TPU (torch_tpu over XLA's CPU backend)",
    Device.CUDA: "CUDA",
    Device.CPU: "CPU",
}


def device_note(device: Device) -> str:
    """Return what has to be known of the figures that a device gives; nothing for a real one."""
    if device is not Device.EMULATED_TPU:
        return ""
    return (
        "Executions and programs are what torch_tpu gives a TPU to run: compare the modes by them. "
        "Times marked emulated are those of XLA's CPU backend and say nothing of a TPU."
    )


def chips_note(chips: ChipReport) -> str:
    """Return how the figures for chips are to be read."""
    return (
        f"Estimates: libtpu {chips.compiler} has compiled the programs of a step; nothing ran on a chip. The time is "
        "the compiler's own cycle estimate by the chip's clock, `at least` what arithmetic and memory traffic between "
        "programs need at published peaks; far above it the step is bound by overhead: kernels too small for the chip. "
        "Starting a program comes on top: where that takes longer than `launch`, dispatch bounds the step. The memory "
        "is that of the largest program; what lives outside it comes on top."
    )


def best_table(report: Report) -> LineTable | None:
    """Return the table that is shown: of the first chip, the cheapest mode of those whose lines are known best."""
    tables = [table for table in report.lines.tables if table.chip == report.lines.tables[0].chip]
    known = [sum(row.share for row in table.rows if row.place) for table in tables]
    well_known = [table for table, share in zip(tables, known, strict=True) if share >= max(known) - _LESS_KNOWN]
    return min(well_known, key=lambda table: sum(row.cycles.value for row in table.rows), default=None)


def best_fusion(report: Report) -> FusionRow | None:
    """Return the mode that saves most executions.

    None where no mode saves any, or computes the same as eager mode, or nothing is known of what they come from.
    """
    useful = comparable(report)
    known = (row for row in report.fusion.rows if any(item.operation for item in row.operations))
    rows = [row for row in known if row.mode in useful and row.saving.saved > 0]
    return max(rows, key=lambda row: row.saving.saved, default=None)


def fusion_title(row: FusionRow) -> str:
    """Return the heading of what a mode saves."""
    before, after = plain(row.saving.before.value), plain(row.saving.after.value)
    return f"What {row.mode.value} mode saves: {before} → {after} executions a step"


def rest(items: Sequence[object], shown: int) -> str:
    """Return what is said of the items that are not shown; nothing where there are none."""
    return f"… and {len(items) - shown} more" if len(items) > shown else ""


def chip_remarks(rows: Sequence[ChipRow]) -> list[str]:
    """Return what the figures of the rows leave out; what most programs lack is one line a chip."""
    lines: list[str] = []
    for row in rows:
        head = f"{row.chip}, {row.mode.value}"
        lines += [
            f"{head}: the compiler refused program {refusal.program[:12]} ({refusal.executions}× a step): "
            f"{refusal.reason}"
            for refusal in row.refused
        ]
        if row.missing:
            lines.append(f"{head}: {row.missing} executions a step are of programs that were not compiled for it")
        if row.unknown_loops:
            lines.append(f"{head}: {row.unknown_loops} loops of unknown length count with one turn")
    for chip in dict.fromkeys(row.chip for row in rows):
        lines += _without_estimate(chip, [row for row in rows if row.chip == chip and row.unestimated])
    return lines


def _without_estimate(chip: str, rows: Sequence[ChipRow]) -> Iterator[str]:
    if not rows:
        return
    kinds = sum((Counter(row.unestimated) for row in rows), Counter[str]())
    shares = ", ".join(f"{sum(row.unestimated.values())} of {row.kernels.value:g} ({row.mode.value})" for row in rows)
    named = ", ".join(name for name, _ in kinds.most_common(_NAMED_KERNELS))
    yield f"{chip}: kernels that carry no estimate count as no time: {shares}; most of them {named}"


def trace_lines(traces: Traces) -> list[str]:
    """Return what was traced and what opens it, apart from TensorBoard's command; nothing without any trace."""
    lines: list[str] = []
    if traces.rows:
        named = ", ".join(row.mode.value for row in traces.rows)
        lines.append(f"{count(traces.rows[0].steps, 'step')} each of {named}, taken after the timed ones")
        lines.append(f"Perfetto and chrome://tracing open Kineto's account: {TRACES}/MODE/{KINETO_TRACE}")
    if traces.graphs:
        lines.append(f"TensorBoard's graph viewer shows the programs compiled for a chip: {', '.join(traces.graphs)}")
    return lines


def notes(report: Report, plan: Plan) -> list[str]:
    """Return what has to be known of the modes' figures; what holds for several modes is said once."""
    ran = {row.mode for row in report.modes.rows}
    said: dict[str, list[str]] = {}
    for mode in plan.modes:
        if mode not in ran:
            said.setdefault("not run, as profiling ended before", []).append(mode.value)
    for row in report.modes.rows:
        for remark in row.remarks:
            said.setdefault(f"{remark.text}{f' ({remark.place})' if remark.place else ''}", []).append(row.mode.value)
        if row.unknown_records:
            text = f"{count(row.unknown_records, 'record')} of another version not read"
            said.setdefault(text, []).append(row.mode.value)
        if row.damaged_records:
            said.setdefault(f"{count(row.damaged_records, 'damaged record')} not read", []).append(row.mode.value)
    lines = [f"{', '.join(modes)}: {text}" for text, modes in said.items()]
    stand_ins: dict[tuple[str, str], Place | None] = {}
    for item in (item for row in report.modes.rows for item in row.stand_ins):
        stand_ins[item.what, item.how] = stand_ins.get((item.what, item.how)) or item.place
    if stand_ins:
        shown = ", ".join(
            f"{what} ({how}{f'; first at {place}' if place else ''})" for (what, how), place in stand_ins.items()
        )
        lines.append(f"stood in for, as the emulation lacks them and a TPU does not: {shown}")
    return lines


def operation_name(row: LineRow) -> str:
    """Return what a row without a line stands for."""
    return row.operations[0] if row.operations else "copies that the compiler added"


def comparison_lists(comparison: Comparison) -> list[tuple[str, list[Finding]]]:
    """Return what each kind of finding fell or rose to, by heading, and what of it changed."""
    lists: list[tuple[str, list[Finding]]] = []
    for kind in Kind:
        found = [finding for finding in comparison.findings if finding.kind is kind]
        before, after = sum(item.before for item in found), sum(item.after for item in found)
        change = f"{after:g}, as before" if before == after else f"{before:g} → {after:g}"
        title = f"{_PLURALS[kind]}: {change}"
        lists.append((title, [item for item in found if item.before != item.after]))
    return lists


_PLURALS = {
    Kind.GRAPH_BREAK: "Graph breaks in the run",
    Kind.RECOMPILE: "Recompiles in the run",
    Kind.HOST_WAIT: "Host waits a step",
}


def finding_change(finding: Finding) -> str:
    """Return how often something is found now, against before."""
    if not finding.after:
        return f"gone ({finding.before:g}× before)"
    return f"new ({finding.after:g}×)" if not finding.before else f"{finding.before:g}× → {finding.after:g}×"


def process_remarks(processes: Processes) -> list[str]:
    """Return what is to be said of runs and ranks: which differ, which is slow, and whose the rest of the report is."""
    differing = [f"Ranks differ: {line}" for line in processes.differences]
    rest = "Step times are over all runs; all else in the report is of the first run, and of its rank 0."
    return [*differing, *processes.slowest, *processes.unrepeatable, *([rest] if processes.rows else [])]
