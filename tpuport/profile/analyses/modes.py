"""How each mode ended, and how long its steps took."""

import re
import signal
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tpuport.profile.analyses.advice import missing_kernel, mixed_types
from tpuport.profile.analyses.new_programs import new_in_every_step
from tpuport.profile.figures import Figure, time_basis
from tpuport.profile.places import Place, Places
from tpuport.profile.plan import Device, Mode, Plan
from tpuport.profile.records import (
    LOST_GRADIENTS,
    NO_TRACE,
    WARMUP_LIMIT,
    Ended,
    Enough,
    Note,
    Phase,
    Program,
    Records,
    Root,
    Started,
    Step,
    StepSourceChosen,
    StoodIn,
    Traced,
    UserCompile,
)
from tpuport.profile.runner import ExitKind
from tpuport.profile.session import FOLLOWS_FAILURE, Run, Session

_SHOWN_NEW = 4
"""Operations compiled anew in every step that are named."""
_MISSING_KERNEL = re.compile(r"operator 'aten::(?P<name>\w+)[\w.]*' is not implemented for TPU")
_MIGRATE_HINT = "Let it take its device from torch.accelerator: `tpuport migrate` makes that change."
_OUT_OF_MEMORY = ("MemoryError", "can't allocate memory", "Cannot allocate memory", "bad_alloc", "RESOURCE_EXHAUSTED")
_SPARSE_ERRORS = ("sparse operators are not supported on TPU", "Inference tensors cannot be saved for backward")
"""What torch_tpu 0.2.0 says of a sparse tensor: the second one, which misleads, where gradients are wanted."""
_SPARSE_CALL = re.compile(r"sparse|\bspmm\b")
_SPARSE_HINT = (
    "A TPU has no kernels for sparse tensors: make the matrix dense (`adj.to_dense()`, then torch.mm), or add up what "
    "its entries point to with index_add. `tpuport lint` finds it: missing-kernel."
)
_EMULATION_ERRORS = (
    "no registered implementation for untyped custom call",
    "no FFI handler registered",
    "is not supported by XLA:CPU",
    "UnsupportedByEmulation",
)
_ADVICE = (
    (r"Torch not compiled with CUDA enabled|Found no NVIDIA driver|No CUDA GPUs are available", _MIGRATE_HINT),
    (
        r"^ModuleNotFoundError",
        "Install it in the environment that tpuport is installed in, whose Python runs the script; a package of the "
        "project itself with `pip install -e .`, or name its folder in PYTHONPATH.",
    ),
    (
        r"doesn't have NCCL built in|ProcessGroupNCCL is only supported with GPUs",
        "NCCL exists for CUDA only. Let the device say which backend it has: `tpuport migrate` makes that change.",
    ),
    (
        r"environment variable \w+ expected, but not set|^KeyError: '(?:LOCAL_)?(?:RANK|WORLD_SIZE)'",
        "What torchrun starts takes `--nproc N`: tpuport starts N ranks then.",
    ),
    (
        r"Could not find backend type 1 for Process Group with name gloo",
        "DistributedDataParallel of torch_tpu 0.2.0 wants the backend named: "
        "init_process_group(torch.distributed.get_default_backend_for_device(device)).",
    ),
)
"""Errors that say by their text alone what is to be done, and that."""
_EMULATION_SOURCES = ("computation_partitioner.cc:", "thunk_emitter.cc:", "cpu_compiler.cc:")
"""Files of XLA's CPU backend: a check that fails in them fails on no TPU."""
_VIEW_ERROR = "RuntimeProgramInputMismatch"
_VIEW_HINT = "A compiled model of torch_tpu 0.2.0 cannot take a view, such as `x[:, :-1]`: give it `x[:, :-1].clone()`."


@dataclass(frozen=True, slots=True)
class StepTime:
    """Wall-clock time of a step: the median of `steps` steps, and their extremes, over all runs of the mode."""

    median: Figure
    lowest: Figure
    highest: Figure
    steps: int


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a mode failed, and where in the user's source."""

    what: str
    place: Place | None
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Remark:
    """Something to know about a mode's figures."""

    text: str
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class StandIn:
    """What the emulation stood in for."""

    what: str
    how: str


@dataclass(frozen=True, slots=True)
class ModeRow:
    """One mode."""

    mode: Mode
    failure: Failure | None
    """None when the script ended well, with at least one step."""
    step_time: StepTime | None
    steps: int
    """All steps that ended, warm-up included."""
    warmup_steps: int
    step_source: str
    """What ends a step: `optimizer` or `call`, or nothing when there was no step."""
    step_name: str
    """Class of that optimizer or model."""
    remarks: tuple[Remark, ...]
    stand_ins: tuple[StandIn, ...]
    unknown_records: int
    damaged_records: int


@dataclass(frozen=True, slots=True)
class Modes:
    """Every mode that was run, in the order of the plan."""

    rows: tuple[ModeRow, ...]

    @property
    def measured(self) -> bool:
        """Whether the script ran well: in eager mode, if that was asked for, and in one mode at least."""
        eager_failed = any(row.mode is Mode.EAGER and row.failure for row in self.rows)
        return not eager_failed and any(row.failure is None for row in self.rows)


def analyse_modes(session: Session) -> Modes:
    """Return one row for each mode that was run."""
    return Modes(tuple(_row(session, run) for run in session.runs))


def step_time_of(runs: Iterable[Run], device: Device) -> StepTime | None:
    """Return the time of a step over the steps of all `runs`; None when none has one that can be used."""
    used = (step for run in runs for step in _steps_to_use(run.records.of(Step))[0])
    return _step_time(tuple(used), device)


def _row(session: Session, run: Run) -> ModeRow:
    plan = session.plan
    others = [other for other in session.others if other.mode is run.mode]
    records = run.records
    places = Places(records, plan.directory)
    steps = records.of(Step)
    used, remark = _steps_to_use(steps)
    notes = records.of(Note)
    remarks = [Remark(note.text, places.place(note.frame)) for note in notes]
    why = _first_failure(plan, [run, *others])
    if remark and steps:
        remarks.append(Remark(remark))
    remarks += _remarks(run, places, used)
    remarks += _never_settled(session, run)
    if why is None and plan.traced and not records.of(Traced) and all(note.code != NO_TRACE for note in notes):
        remarks.append(Remark("no trace: the script ended before the steps that were to be traced"))
    source = records.last(StepSourceChosen)
    return ModeRow(
        mode=run.mode,
        failure=why,
        step_time=step_time_of((run, *(other for other in others if not other.rank)), plan.device),
        steps=len(steps),
        warmup_steps=sum(step.phase is Phase.WARMUP for step in steps),
        step_source=source.source if source else "",
        step_name=source.name if source else "",
        remarks=tuple(remarks),
        stand_ins=tuple(StandIn(item.what, item.how) for item in records.of(StoodIn)),
        unknown_records=records.unknown,
        damaged_records=records.damaged,
    )


def _first_failure(plan: Plan, runs: list[Run]) -> Failure | None:
    """Return the failure that came first: when a rank fails, its peers fail for want of it."""
    for run in sorted(runs, key=lambda run: (run.number, run.exit.seconds)):
        why = failure(plan, run)
        if why is not None:
            names = [f"run {run.number}"] * (run.number > 1) + [f"rank {run.rank}"] * (plan.ranks is not None)
            return replace(why, what=": ".join((*names, why.what)))
    return None


def _steps_to_use(steps: tuple[Step, ...]) -> tuple[tuple[Step, ...], str]:
    """Return the steps whose times count, and what has to be said of the choice. The first step holds the start-up."""
    if timed := tuple(step for step in steps if step.phase is Phase.TIMED):
        return timed, ""
    later = steps[1:]
    if calm := tuple(step for step in later if not step.compiled):
        return calm, f"the script ended after {len(steps)} steps: the times are of steps meant for warm-up or counting"
    if later:
        return later, f"the script ended after {len(steps)} steps, all of which compiled: the times include compilation"
    return (), "the script ended after one step, which holds the start-up: it has no step time"


def _step_time(steps: tuple[Step, ...], device: Device) -> StepTime | None:
    if not steps:
        return None
    basis = time_basis(device)
    seconds = [step.seconds for step in steps]
    return StepTime(
        median=Figure(statistics.median(seconds), "s", basis),
        lowest=Figure(min(seconds), "s", basis),
        highest=Figure(max(seconds), "s", basis),
        steps=len(seconds),
    )


def _remarks(run: Run, places: Places, used: tuple[Step, ...]) -> list[Remark]:
    records = run.records
    remarks: list[Remark] = []
    compiling = [step for step in used if step.phase is Phase.TIMED and step.compiled]
    if compiling:
        remarks.append(Remark(f"{len(compiling)} of the {len(used)} timed steps compiled new programs"))
    ended = records.last(Ended)
    if ended is not None and ended.how == "exit" and ended.code and records.of(Step):
        remarks.append(Remark(f"the script called sys.exit({ended.code})", places.place(ended.frame)))
    if run.failed_execution and (ended is None or ended.how != "raised"):
        remarks.append(Remark(f"an execution failed, and the script went on: {_first_line(run.failed_execution)}"))
    user_compiles = records.of(UserCompile)
    if user_compiles and not run.mode.compiles:
        remarks.append(
            Remark(
                "the script's own torch.compile is passed through in this mode", places.place(user_compiles[0].frame)
            )
        )
    return remarks


def _never_settled(session: Session, run: Run) -> list[Remark]:
    # A fused program differs now and then from the one of the step before: that settles.
    settled = all(note.code != WARMUP_LIMIT for note in run.records.of(Note))
    spots = [] if settled else new_in_every_step(session, run)
    if not spots:
        return []
    named = ", ".join(f"`{operation}` at {place}" for place, operation in spots[:_SHOWN_NEW])
    more = f" and {len(spots) - _SHOWN_NEW} more" if len(spots) > _SHOWN_NEW else ""
    return [
        Remark(
            f"compiled anew in every step: {named}{more}. A slice with other bounds, another size or another Python "
            "number makes another program: slice before the move to the device, pad, or pass the number as a tensor."
        )
    ]


def failure(plan: Plan, run: Run) -> Failure | None:
    """Return why a run under `plan` failed, or None when the script ended well, with at least one step."""
    records = run.records
    places = Places(records, plan.directory)
    steps = len(records.of(Step))
    if records.last(Enough) is not None:
        return _idle_device(plan, records) or _nothing_compiled(run)
    if run.exit.kind is not ExitKind.EXITED:
        return _stopped_from_outside(plan, run, places, steps)
    ended = records.last(Ended)
    if ended is None:
        return _silent_exit(run, steps)
    place = places.place(ended.frame)
    if ended.how == "setup":
        return Failure(f"the device could not be set up: {ended.error}", None, "Run `tpuport doctor`.")
    if ended.how == "raised":
        hint = ""
        if known := next((advice for error, advice in _ADVICE if re.search(error, ended.error)), ""):
            hint = known
        elif missing := _MISSING_KERNEL.search(ended.error):
            advice = missing_kernel(missing["name"])
            hint = f"A TPU has no kernel for `{missing['name']}`. {advice.edit} `tpuport lint` finds it: {advice.rule}."
        elif any(text in ended.error for text in _SPARSE_ERRORS) and _SPARSE_CALL.search(ended.traceback):
            hint = _SPARSE_HINT
        elif any(text in ended.error or text in ended.traceback for text in _EMULATION_ERRORS):
            hint = "The emulated TPU cannot run this; a TPU can. Nothing is wrong with the script."
        elif plan.memory_limit is not None and any(text in ended.error for text in _OUT_OF_MEMORY):
            hint = f"Each process of the script may hold {plan.memory_limit / 2**30:g} GiB: raise --memory-limit."
        elif ended.error.startswith("EOFError") and any(note.code == "stdin" for note in records.of(Note)):
            hint = "Under tpuport standard input is empty; pass what the script asks for as arguments after `--`."
        elif run.mixed_types:
            hint = mixed_types(run.mixed_types)
        elif lost := next((note for note in records.of(Note) if note.code == LOST_GRADIENTS), None):
            hint = lost.text
        what = f"{_first_line(ended.error)} ({_when(steps)})"
        if FOLLOWS_FAILURE in ended.error and run.failed_execution:
            what += f"; what failed first: {_first_line(run.failed_execution)}"
            hint = _VIEW_HINT if _VIEW_ERROR in run.failed_execution else hint
        return Failure(what, place, hint)
    if ended.how == "exec":
        return Failure(
            f"the script replaced its process by another program, {ended.error}, {_when(steps)}",
            place,
            "tpuport follows a script that starts itself anew, and no other program: name the script that trains.",
        )
    if ended.how == "os-exit" and (ended.code or not steps):
        return Failure(f"the script called os._exit({ended.code}) {_when(steps)}{_last_output(run)}", place)
    if not steps:
        return _no_steps(ended, place, run)
    if ended.how == "exit" and ended.code:
        return Failure(_exited(ended, steps, run), place)
    return _idle_device(plan, records) or _nothing_compiled(run)


def _idle_device(plan: Plan, records: Records) -> Failure | None:
    """A script that never used the TPU was measured on the CPU: its figures would be taken for a TPU's."""
    if not plan.device.is_tpu or records.of(Program):
        return None
    return Failure("nothing ran on the TPU: the script keeps its model and data on the CPU", None, _MIGRATE_HINT)


def _nothing_compiled(run: Run) -> Failure | None:
    """A compiled mode that compiled nothing has measured eager mode: that is no success."""
    from tpuport.profile.analyses.programs import count_graphs

    if run.mode is Mode.COMPILED_STEP and not any(note.code == "compiled-step" for note in run.records.of(Note)):
        return Failure("no optimizer's step was compiled: none was built that can be", None, "Use the mode compiled.")
    if not run.mode.compiles or count_graphs(run.records):
        return None
    if bool(run.records.of(Root)) or bool(run.records.of(UserCompile)):
        return Failure(
            "nothing was compiled: torch.compile was applied, but no graph was made of it",
            None,
            "See the graph breaks below: the first one comes before any tensor operation, or the code never ran.",
        )
    return Failure(
        "nothing was compiled: no outermost call of an nn.Module was seen",
        None,
        "Name what to compile: `--compile-target FUNCTION`, or MODULE:FUNCTION where another file defines it.",
    )


def _exited(ended: Ended, steps: int, run: Run) -> str:
    detail = f": {_first_line(ended.error)}" if ended.error else _last_output(run) if ended.code else ""
    return f"the script called sys.exit({ended.code}) {_when(steps)}{detail}"


def _last_output(run: Run) -> str:
    return f"; its last output: {run.stderr_tail[-1]}" if run.stderr_tail else ""


def _no_steps(ended: Ended, place: Place | None, run: Run) -> Failure:
    hints = {
        "no-step": "Give it a --step-on that it reaches: `--step-on call` measures the model calls.",
    }
    hint = next((hints[note.code] for note in run.records.of(Note) if note.code in hints), "")
    if ended.how == "exit":
        return Failure(_exited(ended, 0, run), place, hint)
    return Failure(
        "the script ended without a step",
        None,
        hint
        or "A step is an optimizer's step(), or without one the outermost call of an nn.Module: the script has neither."
        " Check its arguments, given after `--`; a script of functions needs `--compile-target FUNCTION`, and its calls"
        " are the steps then.",
    )


def _stopped_from_outside(plan: Plan, run: Run, places: Places, steps: int) -> Failure:
    found = (places.innermost(stack) for stack in run.crash_stacks)
    place = next((place for place in found if place is not None), None)
    if run.exit.kind is ExitKind.TIMEOUT:
        return Failure(
            f"the time limit of {plan.timeout_s:g} s was reached {_when(steps)}",
            place,
            "Raise --timeout, or make the script's work smaller.",
        )
    if run.exit.kind is ExitKind.PEER_LEFT:
        return Failure(f"another rank had ended, and this one was stopped {_when(steps)}", place)
    if run.exit.kind is ExitKind.INTERRUPTED:
        return Failure(f"interrupted {_when(steps)}", place)
    name = signal.Signals(run.exit.code).name if run.exit.code in set(signal.Signals) else str(run.exit.code)
    hint = ""
    if name == "SIGKILL":
        hint = "The kernel does this when memory runs out."
    elif run.fatal and plan.device.is_tpu:
        hint = f"{_who_aborted(run.fatal)} Work runs behind the script: the operation is at this line or before it."
    said = f": {_first_line(run.fatal)}" if run.fatal else ""
    return Failure(f"the process was ended by {name} {_when(steps)}{said}", place, hint)


def _who_aborted(fatal: str) -> str:
    if fatal.startswith(_EMULATION_SOURCES):
        return "XLA's CPU backend, which emulates the TPU here, cannot run this; a TPU can."
    return "It is a check in torch_tpu or XLA that failed: expect the same on a TPU."


def _silent_exit(run: Run, steps: int) -> Failure:
    phase = _when(steps) if run.records.last(Started) else "before the script began"
    why = f"without saying why{_last_output(run)}"
    return Failure(f"the process exited with status {run.exit.code} {phase}, {why}", None)


def _first_line(text: str) -> str:
    """Return the first line that says something; one that ends with a colon says it in the next."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    line = " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1])
    return line if len(line) <= 300 else f"{line[:300]}…"


def _when(steps: int) -> str:
    if not steps:
        return "before its first step"
    return "after 1 step" if steps == 1 else f"after {steps} steps"
