"""Files to outcomes: which files are parsed at all, what each comes to, and how none of them can stop the others."""

import contextlib
import gc
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tpuport.baseline import Entry
from tpuport.errors import TpuportError
from tpuport.model import Finding, Outcome, Project, Rule, Safety, Status
from tpuport.source import project, text

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

    from pathspec import GitIgnoreSpec

    from tpuport.cache import Cache

CANDIDATE = (
    b"cuda",
    b"CUDA",
    b"Cuda",
    b"nccl",
    b"NCCL",
    b"cudnn",
    b"autocast",
    b"GradScaler",
    b"DataParallel",
    b"torch.load",
    b"pin_memory",
    b".half(",
    b"apex",
    b"triton",
    b"nvtx",
    b"torch.compile",
    b"inductor",
    b"max-autotune",
    b"reduce-overhead",
    b"record_stream",
    b"sdpa_kernel",
    b"dist.reduce",
    b"distributed.reduce",
    b"distributed.run",
    b"distributed.launch",
    b"torch.multiprocessing",
    b"init_process_group",
    b"torch.tpu",
    b'"tpu',
    b"'tpu",
    b".weight = ",
    b"xformers",
    b"flash_attn",
    b"bitsandbytes",
    b"transformer_engine",
    b"deepspeed",
    b"tensorrt",
    b"pynvml",
    b"cupy",
    b"amp_C",
)
"""A file without any of these bytes holds nothing that a rule could match, and is not parsed.

Plain strings, each searched for on its own: an alternation of them in one regex is six times slower.
"""

TORCH_CANDIDATE = (
    b".backward(",
    b"DataLoader(",
    b"float64",
    b"double",
    b"complex128",
    b".conj(",
    b".mH",
    b".adjoint(",
    b"nonzero",
    b"argwhere",
    b"masked_select",
    b"torch.unique",
    b"torch.where(",
    b"copysign",
    b"logaddexp",
    b"nansum",
    b"median",
    b"kthvalue",
    b"std_mean",
    b".i0(",
    b"sinc(",
    b"hypot(",
    b"cross(",
    b"torch.mode(",
    b"histogram(",
    b"logspace",
    b"poisson(",
    b"renorm",
    b"det(",
    b"matrix_exp",
    b"linalg.",
    b"cholesky",
    b"RReLU",
    b"rrelu",
    b"quantize_per",
    b"bessel_j0",
    b"zeta(",
    b"distributions",
    b"mish(",
    b"Mish(",
    b"smooth_l1",
    b"SmoothL1",
    b"huber",
    b"Huber",
    b"margin_loss",
    b"MarginLoss",
    b"sparse.softmax",
    b"unpool2d",
    b"Unpool2d",
    b"max_pool2d",
    b"MaxPool2d",
    b"weight_norm",
    b"interpolate(",
    b"log_normal_",
    b"geometric_",
    b"cauchy_",
    b"to_sparse",
    b"to_mkldnn",
    b"def forward(",
    b"Embedding(",
    b"index_select(",
    b"torch.tensor([",
    b"one_hot(",
)
"""As CANDIDATE, for the rules about what a TPU does with torch's own operators: only beside the word `torch`."""

WORTH_WORKERS = {False: 24, True: 8}
"""Below so many candidates to match, or to fix as well, starting worker processes takes longer than they save."""

WORTH_SURVEYORS = 400
"""Below so many files to look at, starting worker processes takes longer than they save."""

_SURVEYED = 50
"""Files whose bytes a worker looks at in one go."""

_CHUNK = 6
"""Files a worker takes at a time, at most: progress has to move, and the end of a run must not wait for one worker."""


@dataclass(frozen=True, slots=True)
class Task:
    """What to do with each file of a run.

    `time_limit` is seconds a file, 0 for none; `max_size` is bytes; `debug` lets a rule's bug propagate.
    """

    rules: tuple[Rule, ...]
    project: Project
    fix: bool = False
    unsafe: bool = False
    line_length: int | None = None
    root: Path = field(default_factory=Path.cwd)
    per_file_ignores: tuple[tuple[str, frozenset[str]], ...] = ()
    """Gitignore pattern relative to `root`, and the codes of the rules that do not apply to files it matches."""
    max_size: int = text.MAX_SIZE
    time_limit: float = 0
    debug: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """What a command has to show: an outcome a file, and `notes` about the run as a whole.

    `hidden` counts findings that were left out as below the severity asked for, `known` those of the baseline,
    `unchanged` those on lines that did not change; `stale` are entries of the baseline that nothing matched.
    `written` tells a migration from its preview. `fixes` are the safe fixes of a file, for formats that carry them.
    """

    outcomes: tuple[Outcome, ...]
    notes: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    hidden: int = 0
    known: int = 0
    unchanged: int = 0
    stale: tuple[Entry, ...] = ()
    written: bool = False
    fixes: dict[Path, Outcome] = field(default_factory=dict)

    def of(self, *statuses: Status) -> tuple[Outcome, ...]:
        """Outcomes that ended in one of `statuses`."""
        return tuple(outcome for outcome in self.outcomes if outcome.status in statuses)

    @property
    def findings(self) -> tuple[tuple[Path, Finding], ...]:
        """Every finding that remains, with its file."""
        return tuple((outcome.path, finding) for outcome in self.outcomes for finding in outcome.findings)

    @property
    def ignored(self) -> tuple[tuple[Path, Finding], ...]:
        """Every finding that a comment ignores, with its file."""
        return tuple((outcome.path, finding) for outcome in self.outcomes for finding in outcome.ignored)

    @property
    def fixed(self) -> tuple[tuple[Path, Finding], ...]:
        """Every finding that is rewritten, with its file."""
        return tuple((outcome.path, finding) for outcome in self.outcomes for finding in outcome.fixed)


class Facts(NamedTuple):
    """What one file says about the run as a whole; see `Project`."""

    cuda_methods: tuple[str, ...]
    defers_cuda: bool
    selects_device: bool
    imported_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Survey:
    """A run's files after one look at their bytes: a Path is still to be parsed, everything else is settled."""

    items: tuple[Path | Outcome, ...]
    cuda_methods: tuple[str, ...] = ()
    defers_cuda: bool = False
    selects_device: bool = False
    imported_names: tuple[str, ...] = ()


def survey(
    found: Iterable[Path | Outcome], max_size: int = text.MAX_SIZE, cache: "Cache | None" = None, jobs: int = 0
) -> Survey:
    """Read every file once: settle those with nothing to match, and gather what the rules must know of all of them.

    `jobs` is worker processes, as for `run`; a cache that knows files is quicker without any.
    """
    found = list(found)
    paths = [item for item in found if isinstance(item, Path)]
    looked: Iterator[_Looked] | None = None
    if len(paths) >= WORTH_SURVEYORS and (jobs or _cores()) > 1 and (cache is None or cache.is_new):
        looked = iter(_look_in_workers(paths, max_size, cache, jobs or _cores()))
    items: list[Path | Outcome] = []
    facts: list[Facts] = []
    with _no_collections():
        for item in found:
            if isinstance(item, Outcome):
                items.append(item)
                continue
            own = next(looked) if looked is not None else _look_at(item, max_size, cache)
            if own is None:
                items.append(Outcome(item, Status.UNCHANGED))
            elif isinstance(own, Outcome):
                items.append(own)
            else:
                items.append(item)
                facts.append(own)
    return together(items, facts)


_Looked: TypeAlias = "Facts | Outcome | None"
"""What one file says about the run, or how it ended; None if it holds nothing to match."""


def _look_at(path: Path, max_size: int, cache: "Cache | None") -> _Looked:
    try:
        raw = text.read_bytes(path, max_size)
        if cache is not None:
            known, facts = cache.known_facts(path, raw)
            if known:
                return facts
        facts = _facts(path, raw)
    except text.Unreadable as error:
        return error.outcome
    if cache is not None:
        cache.add_facts(path, facts)
    return facts


def _facts(path: Path, raw: bytes, selection: bool = True) -> Facts | None:
    if is_candidate(raw):
        return look(raw, selection)
    text.decode(raw, path)
    return None


def look(raw: bytes, selection: bool = True) -> Facts:
    """What one file's bytes say about the run; without `selection`, nothing about the current device."""
    return Facts(
        tuple(project.cuda_methods(raw)),
        project.defers_cuda(raw),
        selection and project.selects_device(raw),
        tuple(project.imported_names(raw)),
    )


def _look_in_workers(paths: Sequence[Path], max_size: int, cache: "Cache | None", workers: int) -> list[_Looked]:
    """What every file says, looked at in worker processes; where one of those dies, in this process."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    chunks = [paths[start : start + _SURVEYED] for start in range(0, len(paths), _SURVEYED)]
    looked: list[_Looked] = []
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, _context(), _start_surveyor)
    finished = False
    try:
        with _no_interrupt():
            futures = [pool.submit(_look_at_chunk, chunk, max_size, cache is not None) for chunk in chunks]
        for chunk, future in zip(chunks, futures, strict=True):
            for path, (key, own) in zip(chunk, future.result(), strict=True):
                if cache is not None and key:
                    cache.meet(path, key)
                    if not isinstance(own, Outcome):
                        cache.add_facts(path, own)
                looked.append(own)
        finished = True
    except BrokenProcessPool:
        finished = True
        looked += [_look_at(path, max_size, cache) for path in paths[len(looked) :]]
    finally:
        if not finished:
            for worker in set(multiprocessing.active_children()) - others:
                worker.terminate()
        pool.shutdown(cancel_futures=True)
    return looked


def _look_at_chunk(paths: Sequence[Path], max_size: int, caching: bool) -> list[tuple[bytes, _Looked]]:
    """What each file says, with the digest of its text for a cache; one that selects a device speaks for all."""
    found: list[tuple[bytes, _Looked]] = []
    selects = False
    with _no_collections():
        for path in paths:
            key = b""
            own: _Looked
            try:
                raw = text.read_bytes(path, max_size)
                key = text.digest(raw) if caching else b""
                own = _facts(path, raw, selection=caching or not selects)
            except text.Unreadable as error:
                own = error.outcome
            selects = selects or (isinstance(own, Facts) and own.selects_device)
            found.append((key, own))
    return found


def together(items: Sequence[Path | Outcome], facts: Sequence[Facts]) -> Survey:
    """A run's files with what all of their facts come to."""
    return Survey(
        tuple(items),
        tuple(sorted({method for fact in facts for method in fact.cuda_methods})),
        any(fact.defers_cuda for fact in facts),
        any(fact.selects_device for fact in facts),
        tuple(sorted({name for fact in facts for name in fact.imported_names})),
    )


def is_candidate(raw: bytes) -> bool:
    """Whether a file with these bytes has to be parsed."""
    return any(word in raw for word in CANDIDATE) or (b"torch" in raw and any(word in raw for word in TORCH_CANDIDATE))


def run_cached(items: Sequence[Path | Outcome], task: Task, cache: "Cache", jobs: int = 0) -> Iterator[Outcome]:
    """As `run`, but texts whose outcome the cache knows are not looked at again; what is new is saved in the end."""
    cache.begin(task.rules, task.project)
    ignored = {item: ignored_codes(item, task.root, task.per_file_ignores) for item in items if isinstance(item, Path)}
    known = [item if isinstance(item, Outcome) else cache.outcome(item, ignored[item]) or item for item in items]
    for outcome in run(known, task, jobs):
        if outcome.digest:
            cache.add(outcome, ignored[outcome.path])
        yield outcome
    cache.save()


def reconsidered(outcomes: Sequence[Outcome], task: Task, jobs: int = 0) -> list[Outcome]:
    """The outcomes, with files settled anew whose flags for CUDA lead to code without a counterpart in other files.

    A flag goes from file to file by its name alone, so a variable of the same name holds a test back, wherever it is.
    """
    places = {
        name: f"{outcome.path}:{finding.span.line}"
        for outcome in outcomes
        for finding in outcome.findings
        for name in finding.under
    }

    def leads_there(outcome: Outcome) -> bool:
        found = (*outcome.fixed, *outcome.findings)
        return any(name in places for finding in found if finding.edits for name in finding.sets)

    again = [outcome.path for outcome in outcomes if leads_there(outcome)] if places else []
    if not again:
        return list(outcomes)
    informed = replace(task, project=replace(task.project, needs_cuda=tuple(sorted(places.items()))))
    anew = {outcome.path: outcome for outcome in run(again, informed, jobs)}
    return [anew.get(outcome.path, outcome) for outcome in outcomes]


def run(items: Sequence[Path | Outcome], task: Task, jobs: int = 0) -> Iterator[Outcome]:
    """Settle every file, in order, one outcome each as soon as it is known.

    `jobs` is worker processes: 0 for one a core, and none at all for a short run.
    Never raises for what a file holds, except a rule's bug under `task.debug`.
    """
    paths = [item for item in items if isinstance(item, Path)]
    workers = min(jobs or _cores(), len(paths))
    settled: Generator[Outcome]
    if workers < 2 or (not jobs and len(paths) < WORTH_WORKERS[task.fix]):
        settled = (settle(path, task) for path in paths)
    else:
        settled = _in_workers(paths, task, workers)
    with contextlib.closing(settled):
        for item in items:
            yield item if isinstance(item, Outcome) else next(settled)


def settle(path: Path, task: Task, raw: bytes | None = None) -> Outcome:
    """What one file comes to; `raw` is its content where that is not to be read from the file."""
    try:
        with _no_collections(), _time_limit(task.time_limit), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's remarks on the user's literals and escapes
            return _settle(path, task, raw)
    except _TookTooLong:
        return Outcome(path, Status.FAILED, f"took longer than {task.time_limit:g} s (time-limit in the settings)")


@contextlib.contextmanager
def _no_collections() -> Iterator[None]:
    """A syntax tree is many objects and no garbage: collections while it grows cost half the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _settle(path: Path, task: Task, raw: bytes | None) -> Outcome:
    try:
        from tpuport import match  # only once there is a file to match

        content = text.read_bytes(path, task.max_size) if raw is None else raw
        source = text.decode(content, path).text
        rules = _rules_for(path, task)
        everything = match.findings(source, task.project, rules)
        findings = tuple(finding for finding in everything if finding.ignored is None)
        ignored = tuple(finding for finding in everything if finding.ignored is not None)
        if not task.fix or not any(_applies(finding, task) for finding in findings):
            status = Status.FINDINGS if findings else Status.UNCHANGED
            return Outcome(path, status, findings=findings, ignored=ignored, digest=text.digest(content))
        from tpuport.rewrite import rewrite  # libcst, which lint and files without a fix do without

        done = rewrite(source, task.project, rules, unsafe=task.unsafe, line_length=task.line_length)
    except text.Unreadable as error:
        return error.outcome
    except SyntaxError as error:
        reason = f"syntax error, line {error.lineno or '?'}: {error.msg}"
        return Outcome(path, Status.FAILED, reason, line=error.lineno or 0)
    except RecursionError:
        return Outcome(path, Status.FAILED, "nested too deeply to be analysed")
    except MemoryError:
        return Outcome(path, Status.FAILED, "too large for the memory there is")
    except TpuportError as error:
        return Outcome(path, Status.FAILED, f"{error} ({error.hint})" if error.hint else str(error))
    except Exception as error:  # the one catch-all: a rule's bug costs the file it met, never the run
        if task.debug:
            raise
        return Outcome(path, Status.FAILED, _bug(error))
    if done.text == source:
        status = Status.FINDINGS if done.remaining else Status.UNCHANGED
        return Outcome(path, status, findings=tuple(done.remaining), ignored=ignored)
    return Outcome(
        path,
        Status.CHANGED,
        findings=tuple(done.remaining),
        fixed=tuple(done.fixed),
        ignored=ignored,
        old=source,
        new=done.text,
    )


def _applies(finding: Finding, task: Task) -> bool:
    return finding.fixable and (task.unsafe or finding.safety is Safety.SAFE)


def _rules_for(path: Path, task: Task) -> tuple[Rule, ...]:
    ignored = ignored_codes(path, task.root, task.per_file_ignores)
    return tuple(rule for rule in task.rules if rule.code not in ignored) if ignored else task.rules


def ignored_codes(path: Path, root: Path, per_file: Sequence[tuple[str, frozenset[str]]]) -> frozenset[str]:
    """Codes of the rules that the settings rule out for `path`."""
    relative = os.path.relpath(os.path.abspath(path), root) if per_file else ""
    return frozenset().union(*(codes for pattern, codes in per_file if _patterns(pattern).match_file(relative)))


@cache
def _patterns(line: str) -> "GitIgnoreSpec":
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines([line])


def _bug(error: Exception) -> str:
    """Say which rule failed: the last frame in a rule's own module, or else where tpuport was."""
    frames = traceback.extract_tb(error.__traceback__)
    rules = [Path(frame.filename).stem for frame in frames if Path(frame.filename).parent.name == "checks"]
    ours = [frame for frame in frames if "tpuport" in Path(frame.filename).parts] or frames
    where = f"rule {rules[-1]}" if rules else f"{Path(ours[-1].filename).name}, line {ours[-1].lineno}"
    said = f"{type(error).__name__}: {error}".splitlines()[0]
    return f"a bug in tpuport ({where}): {said}; please report it with this file, and use `tpuport --debug` to see more"


class _TookTooLong(BaseException):
    """Raised from the alarm, past every `except Exception` between it and `settle`."""


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise _TookTooLong in the block after `seconds`; no limit where there are no alarms (Windows, other threads)."""
    if not seconds or not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def expired(_signal: int, _frame: FrameType | None) -> None:
        raise _TookTooLong

    started = time.monotonic()
    handler = signal.signal(signal.SIGALRM, expired)
    other, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if other:
            signal.setitimer(signal.ITIMER_REAL, max(other - (time.monotonic() - started), 0.001), interval)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_task: Task
"""The run's task in a worker process, sent once rather than with every file."""


def _start_worker(task: Task) -> None:
    global _task
    _task = task
    _start_surveyor()


def _start_surveyor() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the parent decides
    gc.freeze()


def _settle_chunk(paths: Sequence[Path]) -> list[Outcome]:
    return [settle(path, _task) for path in paths]


def _in_workers(paths: Sequence[Path], task: Task, workers: int) -> Generator[Outcome]:
    """Settle chunks in worker processes, in order. A process that dies costs the one file that killed it."""
    import tpuport.match  # before the fork, so that no worker has to import it again

    if task.fix:
        import tpuport.rewrite  # noqa: F401 - likewise
    size = max(1, min(_CHUNK, len(paths) // (4 * workers)))
    chunks: deque[Sequence[Path]] = deque(paths[start : start + size] for start in range(0, len(paths), size))
    while chunks:
        broken = yield from _until_broken(chunks, task, workers)
        if broken:
            for path in chunks.popleft():
                alone = yield from _until_broken(deque([[path]]), task, 1)
                if alone:
                    yield Outcome(path, Status.FAILED, "killed the process that worked on it (memory, or a crash)")


def _until_broken(chunks: deque[Sequence[Path]], task: Task, workers: int) -> Generator[Outcome, None, bool]:
    """Take chunks off the left as they are done; True if a worker died, with the chunks not done left in place."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, _context(), _start_worker, (task,))
    finished = False
    try:
        with _no_interrupt():
            futures = deque(pool.submit(_settle_chunk, chunk) for chunk in chunks)
        while futures:
            try:
                outcomes = futures[0].result()
            except BrokenProcessPool:
                finished = True
                return True
            futures.popleft()
            chunks.popleft()
            yield from outcomes
        finished = True
        return False
    finally:
        if not finished:  # interrupted, or nobody reads on: what the workers are at is of no use any more
            for worker in set(multiprocessing.active_children()) - others:
                worker.terminate()
        pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _no_interrupt() -> Iterator[None]:
    """Put Ctrl-C off: processes started in the block inherit that until they ignore it, and none is half started."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _context() -> "BaseContext":
    """Fork where it is safe and cheap, a fresh interpreter elsewhere."""
    import multiprocessing

    forks = sys.platform == "linux" and threading.active_count() == 1
    return multiprocessing.get_context("fork" if forks else "spawn")
