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
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from tpuport.profile.codec import decode
from tpuport.profile.frames import innermost_user_frame, library_prefixes
from tpuport.profile.layout import CRASH_LOG, DEVICE_LOG, read_json
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
    from tpuport.profile.instruments.compilation import python_stack

    prefixes = library_prefixes()

    def tell(what: str, how: str) -> None:
        writer.write(StoodIn(what, how, innermost_user_frame(python_stack(sys._getframe(1)), prefixes)))

    return standins.install(tell, table)


def _profile(
    mode_plan: ModePlan, writer: RecordWriter, table: PluginTable | None, stand_ins: object, root: str
) -> None:
    from tpuport.profile.instruments.assembly import Instruments
    from tpuport.profile.instruments.float32 import float32_throughout
    from tpuport.profile.instruments.script import ScriptEnd, run_script, watch_exec, watch_os_exit
    from tpuport.profile.instruments.seeds import seed_everything

    plan = mode_plan.plan
    prefixes = library_prefixes()
    leave = watch_os_exit(writer, prefixes)
    watch_exec(mode_plan, writer, prefixes)
    instruments = Instruments(mode_plan, writer, prefixes, table, functools.partial(_finish, leave))
    instruments.install()
    _watch_stdin(writer, prefixes)
    seed_everything(plan.seed)
    writer.write(_started(prefixes))
    instruments.start()
    if plan.memory_limit is not None:
        # What is only reserved, as runtimes do generously, does not count.
        resource.setrlimit(resource.RLIMIT_DATA, (plan.memory_limit, plan.memory_limit))
    sys.excepthook = sys.__excepthook__
    del sys.path[len(sys.path) - 1 - sys.path[::-1].index(root)]
    with ScriptEnd(writer, prefixes), float32_throughout() if plan.float32 else nullcontext():
        run_script(plan, writer, instruments.targets.namespace)
    instruments.write_missed()
    # What is stood in for lasts as long as its library.
    del stand_ins
    _finish(leave)


def _started(prefixes: tuple[str, ...]) -> Started:
    import torch

    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return Started(torch.__version__, str(accelerator or "cpu"), prefixes)


def _watch_stdin(writer: RecordWriter, prefixes: tuple[str, ...]) -> None:
    from tpuport.profile.instruments.compilation import python_stack
    from tpuport.profile.instruments.streams import replace_stdin

    def was_read() -> None:
        frame = innermost_user_frame(python_stack(sys._getframe(1)), prefixes)
        writer.write(Note("stdin", "the script reads standard input, which is empty under tpuport", frame))

    replace_stdin(was_read)


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
