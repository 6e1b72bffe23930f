"""Compiling the programs of a session for several chips, in parallel processes, each program once on this machine."""

import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

from tpuport.cache import directory
from tpuport.profile.chips.estimates import Compiled
from tpuport.profile.codec import DecodeError, decode, encode
from tpuport.profile.layout import CHIPS, MODULE_SUFFIX, PROGRAMS, read_json, write_json

LIMIT_S = 600.0
"""Seconds after which the compiler is taken to hang on a program."""
_ROOT = Path(__file__).resolve().parents[3]
_BOOTSTRAP = "import sys; sys.path.append({root!r}); from tpuport.profile.chips.worker import main; main()"

_LOG_LINE = re.compile(r"^([IWEF]\d{4} |    @ |\*\*\* )")
_LINE_LIMIT = 200
"""Characters kept of a lost process's last line."""

Progress = Callable[[int, int], None]
"""Told how many programs are done, of how many."""


@dataclass(frozen=True, slots=True)
class _Job:
    path: Path
    chip: str
    module: Path | None
    """Where to keep the module that the program becomes, if it is wanted."""


def compile_programs(
    session: Path, programs: Iterable[str], chips: Iterable[str], progress: Progress, *, keep_modules: bool = False
) -> None:
    """Have every program (by SHA-256) that the session holds compiled for every chip; results go to the session.

    What was compiled before on this machine, by this compiler, is taken from the user's cache directory; the modules
    that programs become are not in there, so that keeping them compiles anew.
    """
    jobs: list[_Job] = []
    for chip in chips:
        (session / CHIPS / chip).mkdir(parents=True, exist_ok=True)
        for program in programs:
            module = module_path(session, chip, program) if keep_modules else None
            job = _Job(session / PROGRAMS / program, chip, module)
            cached = _load(_cache_path(program, chip))
            if cached is not None and (module is None or cached.error or module.is_file()):
                _save(session, cached)
            elif job.path.is_file():
                jobs.append(job)
    if jobs:
        _compile(session, jobs, progress)


def module_path(session: Path, chip: str, program: str) -> Path:
    """Return where the module lies that a program becomes on a chip, if it was kept."""
    return session / CHIPS / chip / f"{program}{MODULE_SUFFIX}"


def load_compiled(session: Path, chips: Iterable[str]) -> tuple[Compiled, ...]:
    """Return every result that a session holds, in the order of `chips`; damaged files count as absent."""
    found = (_load(path) for chip in chips for path in sorted((session / CHIPS / chip).glob("*.json")))
    return tuple(result for result in found if result is not None)


def _compile(session: Path, jobs: list[_Job], progress: Progress) -> None:
    # The largest first, so that no process is left with a long one at the end.
    jobs.sort(key=lambda job: -job.path.stat().st_size)
    waiting: queue.SimpleQueue[_Job] = queue.SimpleQueue()
    for job in jobs:
        waiting.put(job)
    results: queue.SimpleQueue[Compiled] = queue.SimpleQueue()
    workers = [_Worker(waiting, results) for _ in range(min(len(jobs), os.cpu_count() or 1))]
    try:
        for done in range(len(jobs)):
            progress(done, len(jobs))
            result = results.get()
            _save(session, result)
            if result.compiler:
                _cache(result)
        progress(len(jobs), len(jobs))
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """A thread that feeds one compiler process, and starts another when that is lost."""

    def __init__(self, jobs: "queue.SimpleQueue[_Job]", results: "queue.SimpleQueue[Compiled]") -> None:
        self._jobs = jobs
        self._results = results
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with tempfile.TemporaryFile(buffering=0) as errors:
            while not self._stopped:
                try:
                    job = self._jobs.get_nowait()
                except queue.Empty:
                    break
                self._results.put(self._answer(job, errors))
            self._end()

    def _answer(self, job: _Job, errors: IO[bytes]) -> Compiled:
        process = self._process = self._process or _start(errors)
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(LIMIT_S, process.kill)
        timer.start()
        try:
            process.stdin.write(json.dumps(_message(job)) + "\n")
            process.stdin.flush()
            return decode(Compiled, json.loads(process.stdout.readline()))
        except (OSError, ValueError):
            # The process is gone, in the middle of this program.
            expired = not timer.is_alive()
            self._end()
            reason = f"it took more than {LIMIT_S:g} s" if expired else f"the compiler crashed{_last_words(errors)}"
            # Named with no compiler, it is not kept: the next try may have more memory or time.
            return Compiled(job.path.name, job.chip, "", 0.0, error=reason)
        finally:
            timer.cancel()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def stop(self) -> None:
        """Take no further job, and lose the one under way."""
        self._stopped = True
        if (process := self._process) is not None:
            process.kill()


def _message(job: _Job) -> dict[str, str | None]:
    return {"program": str(job.path), "chip": job.chip, "module": str(job.module) if job.module else None}


def _last_words(errors: IO[bytes]) -> str:
    """Return the last line that a lost process printed, apart from libtpu's log."""
    errors.seek(0)
    text = errors.read().decode("utf-8", errors="replace")
    errors.seek(0)
    errors.truncate()
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _LOG_LINE.match(line)]
    return f": {lines[-1][:_LINE_LIMIT]}" if lines else ""


def _start(errors: IO[bytes]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _BOOTSTRAP.format(root=str(_ROOT))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        start_new_session=True,
    )


def _save(session: Path, result: Compiled) -> None:
    write_json(session / CHIPS / result.chip / f"{result.program}.json", encode(result))


def _load(path: Path) -> Compiled | None:
    try:
        document: Any = read_json(path)
        return decode(Compiled, document)
    except (OSError, ValueError, DecodeError):
        return None


def _cache(result: Compiled) -> None:
    path = _cache_path(result.program, result.chip)
    # Without a writable cache everything is compiled anew, and nothing is wrong.
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, encode(result))


def _cache_path(program: str, chip: str) -> Path:
    return directory() / "programs" / chip / f"{program}-{_reader()}.json"


@cache
def _reader() -> str:
    """What results depend on beside the program and the chip: the compiler, and how tpuport reads its answer."""
    state = sha256(version("libtpu").encode())
    for name in ("compiler.py", "estimates.py", "hlo.py", "specs.py", "wire.py"):
        state.update((Path(__file__).parent / name).read_bytes())
    return state.hexdigest()[:16]
