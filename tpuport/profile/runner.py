"""Runs the script in one mode: a fresh process in its own group, with a time limit, of which nothing is left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import FrameType

from tpuport.profile.codec import encode
from tpuport.profile.layout import PLAN, STDERR_LOG, STDOUT_LOG, write_json
from tpuport.profile.logs import LogDrain
from tpuport.profile.plan import Device, Mode, ModePlan, Plan

_DUMP_GRACE_S = 2.0
_DRAIN_GRACE_S = 5.0
_BOOTSTRAP = "import sys; sys.path.append({root!r}); from tpuport.profile.child import main; main({plan!r}, {root!r})"


class ExitKind(StrEnum):
    """How a child process came to its end, seen from outside."""

    EXITED = "exited"
    SIGNAL = "signal"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """The end of one child process. `code` is its exit status, or the number of the signal that ended it."""

    kind: ExitKind
    code: int
    seconds: float


class Interrupted(KeyboardInterrupt):
    """The user, or whoever asked tpuport to terminate, wants to stop; `exit` is what became of the child."""

    def __init__(self, exit_: ProcessExit) -> None:
        super().__init__()
        self.exit = exit_


def run_mode(plan: Plan, mode: Mode, folder: Path) -> ProcessExit:
    """Run the script in `mode`; its records and logs go to `folder`, which is created.

    Raises Interrupted, with the child's whole process group killed, on Ctrl-C and SIGTERM.
    """
    folder.mkdir()
    plan_path = folder / PLAN
    write_json(plan_path, encode(ModePlan(plan, mode, str(folder))))
    root = str(Path(__file__).resolve().parent.parent.parent)
    start = time.monotonic()
    with _sigterm_interrupts():
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _BOOTSTRAP.format(root=root, plan=str(plan_path))],
            cwd=plan.directory,
            env=_environment(plan.device),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        drains = (LogDrain(process.stdout, folder / STDOUT_LOG), LogDrain(process.stderr, folder / STDERR_LOG))
        kind = ExitKind.EXITED
        try:
            process.wait(plan.timeout_s)
        except subprocess.TimeoutExpired:
            kind = ExitKind.TIMEOUT
            _dump_stack(process)
        except KeyboardInterrupt:
            kind = ExitKind.INTERRUPTED
        finally:
            _kill_group(process.pid)
            status = process.wait()
            for drain in drains:
                drain.finish(_DRAIN_GRACE_S)
    if kind is ExitKind.EXITED and status < 0:
        kind, status = ExitKind.SIGNAL, -status
    result = ProcessExit(kind, status, time.monotonic() - start)
    if kind is ExitKind.INTERRUPTED:
        raise Interrupted(result)
    return result


def _environment(device: Device) -> dict[str, str]:
    environment = dict(os.environ)
    if device is not Device.TPU:
        # With torch_tpu installed and no TPU attached, a plain `import torch` looks for one through the network.
        environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    if device.is_tpu:
        # What torch.compile keeps on disk would take the place of programs that are to be seen compiled.
        environment["TORCHINDUCTOR_AUTOGRAD_CACHE"] = "0"
    if device in (Device.CPU, Device.EMULATED_TPU):
        environment["CUDA_VISIBLE_DEVICES"] = ""
    return environment


def _dump_stack(process: subprocess.Popen[bytes]) -> None:
    """Have the child write its Python stack to its crash log, to say where it hangs."""
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGUSR2)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_DUMP_GRACE_S)


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
