"""Steps: where they end, which phase each belongs to, how long it took.

Order of the phases: warm-up (until a step compiles nothing), counted steps, in eager mode a watched one, timed steps,
and traced ones if they are asked for. Executions are counted before the timing and never during it, as counting costs
more than many a program; being first, the counts exist even when the script ends early. Traces come last, as a profiler
slows what it watches. The device is idle at both ends of every step, so a step's time holds its own work and no
other's; what tpuport does between two steps is in neither.
"""

import functools
import weakref
from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from tpuport.profile.instruments.host_syncs import HostSyncs
from tpuport.profile.instruments.inputs import InputWaits
from tpuport.profile.instruments.losses import Losses
from tpuport.profile.instruments.numbers import Numbers
from tpuport.profile.instruments.operations import Operations
from tpuport.profile.instruments.programs import Programs
from tpuport.profile.instruments.traces import Traces
from tpuport.profile.plan import Plan, StepSource
from tpuport.profile.records import WARMUP_LIMIT, Enough, Note, Phase, RecordWriter, Step, StepSourceChosen

_IGNORED_STOPS = 3


class EnoughSteps(BaseException):
    """All steps are measured. Not an Exception: a script's own `except Exception` must not swallow it."""


class Steps:
    """Decides at the end of each step what to measure next, and stops the script when all is measured."""

    def __init__(
        self,
        plan: Plan,
        writer: RecordWriter,
        losses: Losses,
        numbers: Numbers,
        programs: Programs | None,
        operations: Operations | None,
        host_syncs: HostSyncs,
        inputs: InputWaits,
        traces: Traces,
        compilations: Callable[[], int],
        stop_now: Callable[[], None],
        let_peers_go_on: Callable[[], None] | None = None,
    ) -> None:
        """`let_peers_go_on` is called in place of stopping, where other ranks need this one to go on."""
        self._plan = plan
        self._writer = writer
        self._losses = losses
        self._numbers = numbers
        self._programs = programs
        self._operations = operations
        self._host_syncs = host_syncs
        self._inputs = inputs
        self._traces = traces
        self._tracing = False
        self._compilations = compilations
        self._stop_now = stop_now
        self._let_peers_go_on = let_peers_go_on
        self._resting = False
        self._synchronize = torch.accelerator.synchronize if torch.accelerator.is_available() else _nothing
        self._phase = Phase.WARMUP
        self._phase_steps = 0
        self._stops = 0
        self._optimizer: weakref.ref[torch.optim.Optimizer] | None = None
        self._source_written = False
        self._counted: set[int] = set()
        self.optimizers = 0
        self.calls = 0
        self._backwards = 0
        self.done = 0
        self._compiled_before = compilations()
        self._start = perf_counter()

    def install(self) -> None:
        """Watch optimizers; model calls are reported through `call_ended`."""
        initialise = torch.optim.Optimizer.__init__

        @functools.wraps(initialise)
        def counted(optimizer: Any, *arguments: Any, **keywords: Any) -> None:
            self.optimizers += 1
            initialise(optimizer, *arguments, **keywords)

        torch.optim.Optimizer.__init__ = counted
        register_optimizer_step_post_hook(self._optimizer_stepped)
        self._start = perf_counter()

    def _optimizer_stepped(self, optimizer: torch.optim.Optimizer, _arguments: Any, _keywords: Any) -> None:
        if self._plan.step_source is StepSource.CALL or not self._writer.owns_process:
            return
        if self._optimizer is None or self._optimizer() is None:
            # With several optimizers (a GAN has two) the first one seen marks the step.
            self._optimizer = weakref.ref(optimizer)
        if self._optimizer() is optimizer:
            self._end_step(StepSource.OPTIMIZER, type(optimizer).__name__)

    def call_ended(self, name: str) -> None:
        """An outermost call of a model, or of a function that is a target, has returned."""
        if not self._writer.owns_process:
            return
        self.calls += 1
        if self._plan.step_source is StepSource.CALL or (
            self._plan.step_source is StepSource.AUTO and not self.optimizers and self._has_trained()
        ):
            self._end_step(StepSource.CALL, name)

    def _has_trained(self) -> bool:
        """Whether there was a backward pass since the last step, or none at all.

        In a script that trains without an optimizer, evaluation is no step of its own, as it is not with one.
        """
        before, self._backwards = self._backwards, self._losses.backwards
        return self._backwards > before or not self._backwards

    def _end_step(self, source: StepSource, name: str) -> None:
        if self._stops:
            self._stop()
        self._synchronize()
        if self._resting:
            self._losses.take()
            return
        if self._tracing:
            if self._traces.step_ended():
                self._tracing = False
                self._measured()
            return
        seconds = perf_counter() - self._start
        executions = None
        if self._phase is Phase.COUNTED and self._programs is not None:
            self._host_syncs.stop(self.done)
            executions = self._programs.stop_counting()
            self._counted |= executions.keys()
        elif self._phase is Phase.WATCHED and self._operations is not None:
            self._operations.stop()
        compiled = self._compilations() - self._compiled_before
        if not self._source_written:
            self._source_written = True
            self._writer.write(StepSourceChosen(source.value, name))
        self._writer.write(Step(self.done, self._phase, seconds, compiled, self._losses.take(), executions))
        self._numbers.step_ended()
        self._inputs.step_ended(self.done)
        self.done += 1
        self._phase_steps += 1
        self._advance(compiled)
        if self._phase is Phase.COUNTED and self._programs is not None:
            self._programs.start_counting()
            self._host_syncs.start()
        elif self._phase is Phase.WATCHED and self._operations is not None:
            self._operations.start()
        self._compiled_before = self._compilations()
        if source is StepSource.OPTIMIZER:
            # Between calls of a model that is not trained there is the script's work with what it gave.
            self._inputs.step_begins()
        self._start = perf_counter()

    def _advance(self, compiled: int) -> None:
        plan = self._plan
        if self._phase is Phase.WARMUP and self._phase_steps >= plan.warmup + plan.checked_steps:
            if compiled and self._phase_steps < plan.warmup_limit + plan.checked_steps:
                return
            if compiled:
                self._writer.write(
                    Note(
                        WARMUP_LIMIT,
                        f"every step still compiles new programs after {self._phase_steps} warm-up steps: "
                        "the step times include compilation",
                    )
                )
            self._enter(Phase.COUNTED if self._programs is not None and plan.counted else Phase.TIMED)
        elif self._phase is Phase.COUNTED and self._phase_steps >= plan.counted:
            if self._programs is not None:
                self._programs.keep(self._counted)
            self._enter(Phase.WATCHED if self._operations is not None else Phase.TIMED)
        elif self._phase is Phase.WATCHED:
            self._enter(Phase.TIMED)
        elif self._phase is Phase.TIMED and self._phase_steps >= plan.steps:
            self._writer.write(Enough())
            self._tracing = self._traces.start()
            if not self._tracing:
                self._measured()

    def _enter(self, phase: Phase) -> None:
        self._phase, self._phase_steps = phase, 0

    def _measured(self) -> None:
        if self._let_peers_go_on is None:
            self._stop()
        else:
            self._resting = True
            self._let_peers_go_on()

    def _stop(self) -> None:
        self._stops += 1
        if self._stops > _IGNORED_STOPS:
            # A bare `except:` in the script swallows the stop again and again.
            self._stop_now()
        raise EnoughSteps


def _nothing() -> None:
    return None
