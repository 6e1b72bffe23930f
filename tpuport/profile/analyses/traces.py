"""What `--trace` has left for TensorBoard, and how it is opened."""

from dataclasses import dataclass

from tpuport.profile.chips.viewer import graph_run, xplane_name
from tpuport.profile.layout import KINETO_TRACE, TRACES, XPLANE_SUFFIX, as_typed
from tpuport.profile.plan import Mode
from tpuport.profile.records import Traced
from tpuport.profile.session import Session


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One mode."""

    mode: Mode
    steps: int
    """Steps in the trace; they came after the timed ones."""
    kineto: str
    """File of torch.profiler's trace, for Perfetto and chrome://tracing, in the session folder."""
    xplane: bool
    """Whether there is a trace for TensorBoard too, which torch_tpu writes; its run is called as the mode."""


@dataclass(frozen=True, slots=True)
class Traces:
    """Every mode that was traced."""

    rows: tuple[TraceRow, ...]
    graphs: tuple[str, ...]
    """Runs in which TensorBoard's graph viewer shows the programs of a step, as compiled for a chip."""
    command: str
    """What opens all of it; empty when there is nothing that TensorBoard could open."""


def analyse_traces(session: Session) -> Traces:
    """Return one row for each mode that was traced."""
    found = ((run.mode, run.records.last(Traced)) for run in session.runs)
    rows = tuple(_row(mode, traced) for mode, traced in found if traced is not None)
    chips = dict.fromkeys(result.chip for result in session.compiled)
    runs = ((graph_run(run.mode, chip), chip) for run in session.runs for chip in chips)
    graphs = tuple(name for name, chip in runs if (session.folder / TRACES / name / xplane_name(chip)).is_file())
    opens = bool(graphs) or any(row.xplane for row in rows)
    return Traces(rows, graphs, f"tensorboard --logdir {as_typed(session.folder)}" if opens else "")


def _row(mode: Mode, traced: Traced) -> TraceRow:
    kineto = f"{TRACES}/{mode.value}/{KINETO_TRACE}"
    return TraceRow(mode, traced.steps, kineto, any(name.endswith(XPLANE_SUFFIX) for name in traced.files))
