"""Runs the script in one mode: a fresh process in its own group, with a time limit, of which nothing is left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import FrameType

from tpuport.profile.codec import encode
from tpuport.profile.launch import rank_environments
from tpuport.profile.layout import ENOUGH, PLAN, STDERR_LOG, STDOUT_LOG, rank_folder, run_folder, write_json
from tpuport.profile.logs import LogDrain
from tpuport.profile.plan import Device, Mode, ModePlan, Plan

_DUMP_GRACE_S = 2.0
_DRAIN_GRACE_S = 5.0
_POLL_S = 0.2
_PEER_GRACE_S = 30.0
"""How long a rank may go on after another has ended: collectives then fail, or wait for ever."""
_BOOTSTRAP = "import sys; sys.path.append({root!r}); from tpuport.profile.child import main; main({plan!r}, {root!r})"


class ExitKind(StrEnum):
    """How a child process came to its end, seen from outside."""

    EXITED = "exited"
    SIGNAL = "signal"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"
    PEER_LEFT = "peer-left"
    """Another rank had ended, and this one went on for too long without it."""


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """The end of one child process. `code` is its exit status, or the number of the signal that ended it."""

    kind: ExitKind
    code: int
    seconds: float


class Interrupted(KeyboardInterrupt):
    """The user, or whoever asked tpuport to terminate, wants to stop; `exits` is what became of the ranks."""

    def __init__(self, exits: tuple[ProcessExit, ...]) -> None:
        super().__init__()
        self.exits = exits


def run_mode(plan: Plan, mode: Mode, folder: Path, session: Path) -> tuple[ProcessExit, ...]:
    """Run the script in `mode`; return how each rank ended, of which there is one if the script knows of no ranks.

    Records and logs go to `folder`, and one below it for each further rank; they are created. Raises Interrupted, with
    every process group killed, on Ctrl-C and SIGTERM.
    """
    environment = _environment(plan.device)
    ranks = ({},) if plan.ranks is None else rank_environments(plan.ranks, plan.device)
    with _sigterm_interrupts():
        processes: list[_Process] = []
        interrupted = False
        try:
            for rank, own in enumerate(ranks):
                first = folder == run_folder(session, mode.value)
                own_plan = replace(plan, traced=plan.traced if first and not rank else 0)
                mode_plan = ModePlan(own_plan, mode, str(rank_folder(folder, rank)), str(session), rank)
                processes.append(_Process(mode_plan, {**environment, **own}))
            _wait(processes, plan.timeout_s)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            for process in processes:
                process.end(ExitKind.INTERRUPTED)
    exits = tuple(process.finished() for process in processes)
    if interrupted:
        raise Interrupted(exits)
    return exits


class _Process:
    """One rank while it runs."""

    def __init__(self, plan: ModePlan, environment: dict[str, str]) -> None:
        self.folder = Path(plan.folder)
        self.folder.mkdir(parents=True)
        plan_path = self.folder / PLAN
        write_json(plan_path, encode(plan))
        root = str(Path(__file__).resolve().parent.parent.parent)
        self._start = time.monotonic()
        self._exit: ProcessExit | None = None
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _BOOTSTRAP.format(root=root, plan=str(plan_path))],
            cwd=plan.plan.directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._drains = (
            LogDrain(self._process.stdout, self.folder / STDOUT_LOG),
            LogDrain(self._process.stderr, self.folder / STDERR_LOG),
        )

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end of the process; say whether it came."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
            self.end(ExitKind.EXITED)
        return self._exit is not None

    @property
    def has_measured(self) -> bool:
        """Whether the rank needs nothing any more, or is gone."""
        return self._exit is not None or (self.folder / ENOUGH).exists()

    def end(self, kind: ExitKind) -> None:
        """Kill the process group and what it left; `kind` says why, if the process has not ended by itself."""
        if self._exit is not None:
            return
        if kind in (ExitKind.TIMEOUT, ExitKind.PEER_LEFT):
            _dump_stack(self._process)
        by_itself = self._process.poll() is not None
        _kill_group(self._process.pid)
        status = self._process.wait()
        if by_itself and status < 0:
            kind, status = ExitKind.SIGNAL, -status
        elif by_itself or (self.folder / ENOUGH).exists():
            kind, status = ExitKind.EXITED, max(status, 0)
        self._exit = ProcessExit(kind, status, time.monotonic() - self._start)

    def finished(self) -> ProcessExit:
        """Return how the process ended, once its output has been read."""
        for drain in self._drains:
            drain.finish(_DRAIN_GRACE_S)
        assert self._exit is not None
        return self._exit


def _wait(processes: list[_Process], timeout_s: float) -> None:
    """Wait until every rank has ended or has measured all; end those that their time, or a lost peer, leaves behind."""
    end = time.monotonic() + timeout_s
    if len(processes) == 1 and not processes[0].wait(timeout_s):
        processes[0].end(ExitKind.TIMEOUT)
    kind = ExitKind.TIMEOUT
    while not all(process.has_measured for process in processes):
        gone = [process.wait(_POLL_S / len(processes)) for process in processes]
        if any(gone) and kind is ExitKind.TIMEOUT:
            kind, end = ExitKind.PEER_LEFT, min(end, time.monotonic() + _PEER_GRACE_S)
        if time.monotonic() > end:
            break
    else:
        kind = ExitKind.EXITED
    for process in processes:
        process.end(kind)


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
