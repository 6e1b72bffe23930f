"""All instruments of one process: made to know of one another, and put in place in the order that they need."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import torch

from tpuport.profile.instruments.compilation import ModelCalls
from tpuport.profile.instruments.dynamo import DynamoTrace
from tpuport.profile.instruments.host_syncs import HostSyncs
from tpuport.profile.instruments.inputs import InputWaits
from tpuport.profile.instruments.locations import locate_operations
from tpuport.profile.instruments.locks import wait_before_holding_the_lock
from tpuport.profile.instruments.losses import Losses
from tpuport.profile.instruments.modules import ModuleNames, name_graph_nodes
from tpuport.profile.instruments.numbers import Numbers
from tpuport.profile.instruments.operations import Operations
from tpuport.profile.instruments.optimizers import CompiledSteps
from tpuport.profile.instruments.programs import Programs
from tpuport.profile.instruments.steps import Steps
from tpuport.profile.instruments.targets import Targets
from tpuport.profile.instruments.traces import Traces
from tpuport.profile.layout import ENOUGH
from tpuport.profile.pjrt import PluginTable
from tpuport.profile.plan import Device, Mode, ModePlan
from tpuport.profile.records import Note, RecordWriter


class Instruments:
    """What watches the script in this process; `table` is that of the device's plugin, if it has one."""

    def __init__(
        self,
        mode_plan: ModePlan,
        writer: RecordWriter,
        prefixes: tuple[str, ...],
        table: PluginTable | None,
        stop_now: Callable[[], None],
    ) -> None:
        plan, mode, session = mode_plan.plan, mode_plan.mode, Path(mode_plan.session)
        self._plan = plan
        self._mode = mode
        self._writer = writer
        self._names = ModuleNames()
        self._programs: Programs | None = None
        self._operations: Operations | None = None
        if table is not None:
            self._watch_programs(table, session, prefixes)
        self._trace = DynamoTrace(writer)
        self._losses = Losses()
        self._inputs = InputWaits(writer, prefixes)
        self._numbers = Numbers(writer, plan.checked_steps, parts=not mode.compiles, watch_draws=plan.float32)
        self._steps = Steps(
            plan,
            writer,
            self._losses,
            self._numbers,
            self._programs,
            self._operations,
            HostSyncs(writer, prefixes, table),
            self._inputs,
            Traces(writer, session, plan.device, mode, plan.traced),
            self._compilations,
            stop_now,
            (Path(mode_plan.folder) / ENOUGH).touch if mode_plan.has_peers else None,
        )
        self._calls = ModelCalls(
            writer,
            prefixes,
            self._names,
            self._numbers,
            compile_models=mode.compiles,
            call_begins=self._inputs.model_called,
            call_ended=self._steps.call_ended,
        )
        self.targets = Targets(plan, self._calls.compile_function, self._calls.compile_module)

    def _watch_programs(self, table: PluginTable, session: Path, prefixes: tuple[str, ...]) -> None:
        """Watch what the device is given, and where in the source it comes from until executions are counted."""
        locating = ExitStack()
        self._programs = Programs(table, self._writer, session, locating.close, memory=self._plan.memory)
        self._unlocked = wait_before_holding_the_lock()
        locating.callback(locate_operations())
        name_graph_nodes(self._names)
        if self._mode is Mode.EAGER:
            self._operations = Operations(self._programs, self._writer, prefixes, self._names.stop)
        else:
            locating.callback(self._names.stop)

    def _compilations(self) -> int:
        return self._trace.graphs + (self._programs.compiled if self._programs is not None else 0)

    def install(self) -> None:
        """Put them in place; steps are not yet timed."""
        self._trace.install()
        self._losses.install()
        self._inputs.install()
        self._numbers.install()
        if self._mode is Mode.COMPILED_STEP:
            capturable = self._plan.device is not Device.CPU
            CompiledSteps(self._writer, torch.compile, lambda: self._trace.graphs, capturable=capturable).install()
        self._calls.install(self.targets)
        self._losses.before_first = self._calls.tell_lost_gradients
        self.targets.install()

    def start(self) -> None:
        """Begin the first step."""
        self._steps.install()

    def write_missed(self) -> None:
        """Write what the script was expected to have and had not: targets, and an optimizer's step."""
        self.targets.write_missed(self._writer)
        if not self._steps.done and self._steps.calls and self._steps.optimizers:
            self._writer.write(
                Note(
                    "no-step",
                    f"{self._steps.calls} model calls ran and an optimizer was built, but its step() never ran",
                )
            )
