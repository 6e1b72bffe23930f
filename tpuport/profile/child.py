"""The process that runs the user's script in one mode. Started by `runner`; never imported by anything else."""

import ctypes
import faulthandler
import functools
import importlib
import os
import resource
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from tpuport.profile.codec import decode
from tpuport.profile.frames import innermost_user_frame, library_prefixes
from tpuport.profile.layout import CRASH_LOG, DEVICE_LOG, ENOUGH, read_json
from tpuport.profile.pjrt import PluginTable
from tpuport.profile.plan import Device, Mode, ModePlan
from tpuport.profile.records import FILE_NAME, Ended, Note, RecordWriter, Started, StoodIn

_PR_SET_PDEATHSIG = 1


def main(plan_path: str, root: str) -> None:
    """Run the mode that the plan file describes; never returns.

    `root` is the entry that was appended to sys.path so that tpuport could be found; the script must not see it.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    plan = decode(ModePlan, read_json(Path(plan_path)))
    folder = Path(plan.folder)
    crash_log = (folder / CRASH_LOG).open("w", encoding="utf-8")
    faulthandler.enable(crash_log)
    faulthandler.register(signal.SIGUSR2, crash_log)
    writer = RecordWriter(folder / FILE_NAME)
    sys.excepthook = functools.partial(_setup_failed, writer)
    with _redirected(folder / DEVICE_LOG), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = _load_device(plan.plan.device)
        stand_ins = _stand_in(plan.plan.device, table, writer)
        _set_mode(plan.plan.device, plan.mode)
    _profile(plan, writer, table, stand_ins, root)


def _setup_failed(
    writer: RecordWriter, kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    writer.write(Ended("setup", 1, f"{kind.__name__}: {error}"))
    sys.__excepthook__(kind, error, trace)


@contextmanager
def _redirected(path: Path) -> Iterator[None]:
    """Send both output streams, those of C++ code too, to a file: a device reports its start-up there."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(file, 1)
    os.dup2(file, 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, descriptor in zip((1, 2), saved, strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.close(file)


def _load_device(device: Device) -> PluginTable | None:
    """Make the device usable through torch; return the table of its PJRT plugin, if it has one."""
    if device is Device.EMULATED_TPU:
        from tpuport.profile import emulator

        return emulator.load()
    if device is Device.TPU:
        libtpu = importlib.import_module("libtpu")
        library = os.environ.get("TPU_LIBRARY_PATH") or libtpu.get_library_path()
        table = PluginTable(Path(library))
        importlib.import_module("torch")
        return table
    importlib.import_module("torch")
    return None


def _stand_in(device: Device, table: PluginTable | None, writer: RecordWriter) -> object:
    if device is not Device.EMULATED_TPU or table is None:
        return None
    from tpuport.profile import standins

    return standins.install(lambda what, how: writer.write(StoodIn(what, how)), table)


def _profile(
    mode_plan: ModePlan, writer: RecordWriter, table: PluginTable | None, stand_ins: object, root: str
) -> None:
    import torch

    from tpuport.profile.instruments.compilation import ModelCalls, python_stack
    from tpuport.profile.instruments.dynamo import DynamoTrace
    from tpuport.profile.instruments.float32 import float32_throughout
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
    from tpuport.profile.instruments.script import ScriptEnd, run_script, watch_exec, watch_os_exit
    from tpuport.profile.instruments.seeds import seed_everything
    from tpuport.profile.instruments.steps import Steps
    from tpuport.profile.instruments.streams import replace_stdin
    from tpuport.profile.instruments.targets import Targets
    from tpuport.profile.instruments.traces import Traces

    plan, mode, session = mode_plan.plan, mode_plan.mode, Path(mode_plan.session)
    prefixes = library_prefixes()
    leave = watch_os_exit(writer, prefixes)
    watch_exec(mode_plan, writer, prefixes)
    programs = operations = None
    names = ModuleNames()
    locating = ExitStack()
    if table is not None:
        programs = Programs(table, writer, session, locating.close, memory=plan.memory)
        wait_before_holding_the_lock()
        locating.callback(locate_operations())
        name_graph_nodes(names)
        if mode is Mode.EAGER:
            operations = Operations(programs, writer, prefixes, names.stop)
        else:
            locating.callback(names.stop)
    trace = DynamoTrace(writer)
    trace.install()
    losses = Losses()
    losses.install()
    inputs = InputWaits(writer, prefixes)
    inputs.install()

    numbers = Numbers(writer, plan.checked_steps, parts=not mode.compiles, watch_draws=plan.float32)
    numbers.install()

    def compilations() -> int:
        return trace.graphs + (programs.compiled if programs is not None else 0)

    steps = Steps(
        plan,
        writer,
        losses,
        numbers,
        programs,
        operations,
        HostSyncs(writer, prefixes),
        inputs,
        Traces(writer, session, plan.device, mode, plan.traced),
        compilations,
        functools.partial(_finish, leave),
        (Path(mode_plan.folder) / ENOUGH).touch if mode_plan.has_peers else None,
    )
    calls = ModelCalls(writer, prefixes, names, numbers, compile_models=mode.compiles, call_ended=steps.call_ended)
    targets = Targets(plan, calls.compile_function, calls.compile_module)
    if mode is Mode.COMPILED_STEP:
        capturable = plan.device is not Device.CPU
        CompiledSteps(writer, torch.compile, lambda: trace.graphs, capturable=capturable).install()
    calls.install(targets)
    losses.before_first = calls.tell_lost_gradients
    targets.install()

    def stdin_was_read() -> None:
        frame = innermost_user_frame(python_stack(sys._getframe(1)), prefixes)
        writer.write(Note("stdin", "the script reads standard input, which is empty under tpuport", frame))

    replace_stdin(stdin_was_read)
    seed_everything(plan.seed)
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    writer.write(Started(torch.__version__, str(accelerator or "cpu"), prefixes))
    steps.install()
    if plan.memory_limit is not None:
        # What is only reserved, as runtimes do generously, does not count.
        resource.setrlimit(resource.RLIMIT_DATA, (plan.memory_limit, plan.memory_limit))
    sys.excepthook = sys.__excepthook__
    del sys.path[len(sys.path) - 1 - sys.path[::-1].index(root)]
    with ScriptEnd(writer, prefixes), float32_throughout() if plan.float32 else nullcontext():
        run_script(plan, writer, targets.namespace)
    targets.write_missed(writer)
    if not steps.done and steps.calls and steps.optimizers:
        writer.write(
            Note("no-step", f"{steps.calls} model calls ran and an optimizer was built, but its step() never ran")
        )
    # What is stood in for lasts as long as its library.
    del stand_ins
    _finish(leave)


def _set_mode(device: Device, mode: Mode) -> None:
    import torch

    if device.is_tpu:
        kinds = torch.tpu.EagerMode
        torch.tpu.eager_mode = kinds.DEFER_AND_FUSE if mode.defers else kinds.DEFER_NEVER
    elif mode.compiles:
        # Otherwise Inductor draws other random numbers than eager mode, and losses can't be compared.
        inductor: Any = importlib.import_module("torch._inductor.config")
        inductor.fallback_random = True


def _finish(leave: Callable[[int], None]) -> None:
    """End the process without the interpreter's teardown, in which torch_tpu's runtime can crash."""
    for stream in (sys.stdout, sys.stderr):
        # The script may have closed its streams, or put in their place what raises anything.
        with suppress(Exception):
            stream.flush()
    leave(0)
