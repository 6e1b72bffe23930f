"""Why a run failed, where in the user's source, and what is to be done about it."""

import re
import signal
from dataclasses import dataclass

from tpuport.profile.analyses.advice import missing_kernel, mixed_types
from tpuport.profile.analyses.programs import count_graphs
from tpuport.profile.frames import is_runtime_file, package_path, traced_frames
from tpuport.profile.places import Place, Places
from tpuport.profile.plan import Mode, Plan
from tpuport.profile.records import (
    LOST_GRADIENTS,
    Ended,
    Enough,
    Note,
    Program,
    Records,
    Root,
    Started,
    Step,
    UserCompile,
)
from tpuport.profile.runner import ExitKind
from tpuport.profile.session import FOLLOWS_FAILURE, Run

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
_NO_VIEW = "view(): cannot create a view of shape"
_CONTIGUOUS_HINT = (
    "This operation of torch_tpu 0.2.0 takes no input that lies in memory in another order, as a transpose leaves it "
    "(group_norm is one): give it `x.contiguous()`."
)
_VIEW_ERROR = "RuntimeProgramInputMismatch"
_VIEW_HINT = (
    "A compiled model of torch_tpu 0.2.0 cannot take a view, such as `x[:, :-1]`: give it `x[:, :-1].clone()`. Nor can "
    "its backward pass take a gradient that is one, as torch.stack of its results makes: "
    "`y.register_hook(lambda g: g.clone())`."
)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a mode failed, and where in the user's source."""

    what: str
    place: Place | None
    hint: str = ""


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
        return _raised(plan, run, ended, place)
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


def _raised(plan: Plan, run: Run, ended: Ended, place: Place | None) -> Failure:
    inner = Places(run.records, plan.directory).of_operation(traced_frames(ended.traceback))
    what = f"{first_line(ended.error)} ({_when(len(run.records.of(Step)))})"
    if inner is not None and package_path(inner.file):
        what += f", in {inner.function} ({inner})"
    hint = _advice(plan, run, ended)
    first = run.failed_execution if FOLLOWS_FAILURE in ended.error else ""
    if first:
        what += f"; what failed first: {first_line(first)}"
    return Failure(what, place, _VIEW_HINT if _VIEW_ERROR in first + ended.error else hint)


def _advice(plan: Plan, run: Run, ended: Ended) -> str:
    """What is to be done about an error that the script raised; empty where that is not known."""
    notes = {note.code: note.text for note in run.records.of(Note)}
    if known := next((advice for error, advice in _ADVICE if re.search(error, ended.error)), ""):
        return known
    if missing := _MISSING_KERNEL.search(ended.error):
        advice = missing_kernel(missing["name"])
        return f"A TPU has no kernel for `{missing['name']}`. {advice.edit} `tpuport lint` finds it: {advice.rule}."
    if any(text in ended.error for text in _SPARSE_ERRORS) and _SPARSE_CALL.search(ended.traceback):
        return _SPARSE_HINT
    if any(text in ended.error or text in ended.traceback for text in _EMULATION_ERRORS):
        return "The emulated TPU cannot run this; a TPU can. Nothing is wrong with the script."
    if plan.memory_limit is not None and any(text in ended.error for text in _OUT_OF_MEMORY):
        return f"Each process of the script may hold {plan.memory_limit / 2**30:g} GiB: raise --memory-limit."
    if ended.error.startswith("EOFError") and "stdin" in notes:
        return "Under tpuport standard input is empty; pass what the script asks for as arguments after `--`."
    if _NO_VIEW in ended.error and is_runtime_file(traced_frames(ended.traceback)[-1].file):
        return _CONTIGUOUS_HINT
    if run.mixed_types:
        return mixed_types(run.mixed_types)
    return notes.get(LOST_GRADIENTS, "")


def _idle_device(plan: Plan, records: Records) -> Failure | None:
    """A script that never used the TPU was measured on the CPU: its figures would be taken for a TPU's."""
    if not plan.device.is_tpu or records.of(Program):
        return None
    return Failure("nothing ran on the TPU: the script keeps its model and data on the CPU", None, _MIGRATE_HINT)


def _nothing_compiled(run: Run) -> Failure | None:
    """A compiled mode that compiled nothing has measured eager mode: that is no success."""
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
    detail = f": {first_line(ended.error)}" if ended.error else _last_output(run) if ended.code else ""
    return f"the script called sys.exit({ended.code}) {_when(steps)}{detail}"


def _last_output(run: Run) -> str:
    return f"; its last output: {run.stderr_tail[-1]}" if run.stderr_tail else ""


def _no_steps(ended: Ended, place: Place | None, run: Run) -> Failure:
    waited = any(note.code == "no-step" for note in run.records.of(Note))
    hint = "Give it a --step-on that it reaches: `--step-on call` measures the model calls." if waited else ""
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
    said = f": {first_line(run.fatal)}" if run.fatal else ""
    return Failure(f"the process was ended by {name} {_when(steps)}{said}", place, hint)


def _who_aborted(fatal: str) -> str:
    if fatal.startswith(_EMULATION_SOURCES):
        return "XLA's CPU backend, which emulates the TPU here, cannot run this; a TPU can."
    return "It is a check in torch_tpu or XLA that failed: expect the same on a TPU."


def _silent_exit(run: Run, steps: int) -> Failure:
    phase = _when(steps) if run.records.last(Started) else "before the script began"
    why = f"without saying why{_last_output(run)}"
    return Failure(f"the process exited with status {run.exit.code} {phase}, {why}", None)


def first_line(text: str) -> str:
    """Return the first line that says something; one that ends with a colon says it in the next."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    line = " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1])
    return line if len(line) <= 300 else f"{line[:300]}…"


def _when(steps: int) -> str:
    if not steps:
        return "before its first step"
    return "after 1 step" if steps == 1 else f"after {steps} steps"
