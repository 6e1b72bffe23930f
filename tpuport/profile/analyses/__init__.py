"""What a session says, one module a question. Each takes the session and gives a frozen section of the report."""

from dataclasses import dataclass

from tpuport.profile.analyses.batches import Batches, analyse_batches
from tpuport.profile.analyses.chips import ChipReport, analyse_chips
from tpuport.profile.analyses.fusion import Fusion, analyse_fusion
from tpuport.profile.analyses.graph_breaks import GraphBreaks, analyse_graph_breaks
from tpuport.profile.analyses.host_syncs import HostSyncs, analyse_host_syncs
from tpuport.profile.analyses.inputs import Inputs, analyse_inputs
from tpuport.profile.analyses.lines import LineCosts, analyse_lines
from tpuport.profile.analyses.losses import Losses, analyse_losses
from tpuport.profile.analyses.modes import Modes, analyse_modes
from tpuport.profile.analyses.modules import ModuleCosts, analyse_modules
from tpuport.profile.analyses.numbers import Numbers, analyse_numbers
from tpuport.profile.analyses.on_cpu import OnCpu, analyse_on_cpu
from tpuport.profile.analyses.processes import Processes, analyse_processes
from tpuport.profile.analyses.programs import Programs, analyse_programs
from tpuport.profile.analyses.recompiles import Recompiles, analyse_recompiles
from tpuport.profile.analyses.traces import Traces, analyse_traces
from tpuport.profile.session import Session


@dataclass(frozen=True, slots=True)
class Report:
    """All sections; each output format renders these and nothing else."""

    modes: Modes
    processes: Processes
    losses: Losses
    numbers: Numbers
    programs: Programs
    graph_breaks: GraphBreaks
    recompiles: Recompiles
    host_syncs: HostSyncs
    chips: ChipReport
    lines: LineCosts
    traces: Traces
    inputs: Inputs
    on_cpu: OnCpu
    modules: ModuleCosts
    fusion: Fusion
    batches: Batches


def analyse(session: Session) -> Report:
    """Run every analysis."""
    return Report(
        analyse_modes(session),
        analyse_processes(session),
        analyse_losses(session),
        analyse_numbers(session),
        analyse_programs(session),
        analyse_graph_breaks(session),
        analyse_recompiles(session),
        analyse_host_syncs(session),
        analyse_chips(session),
        analyse_lines(session),
        analyse_traces(session),
        analyse_inputs(session),
        analyse_on_cpu(session),
        analyse_modules(session),
        analyse_fusion(session),
        analyse_batches(session),
    )
