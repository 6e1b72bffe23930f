"""Files to outcomes: what each file of a run comes to, and how none of them can stop the others."""

import contextlib
import os
import re
import signal
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from tpuport import kinds, workers
from tpuport.baseline import Entry
from tpuport.errors import TpuportError
from tpuport.model import Finding, Outcome, Project, Rule, Safety, Status
from tpuport.source import text

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

    from tpuport.cache import Cache

WORTH_WORKERS = {False: 24, True: 8}
"""Below so many candidates to match, or to fix as well, starting worker processes takes longer than they save."""

OLD_PYTHON = re.compile(r"Missing parentheses in call to|multiple exception types must|leading zeros in decimal")
"""How Python's own messages begin for code that only Python 2 runs."""

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


def run_cached(items: Sequence[Path | Outcome], task: Task, cache: "Cache", jobs: int = 0) -> Iterator[Outcome]:
    """As `run`, but texts whose outcome the cache knows are not looked at again; what is new is left for it to save."""
    cache.begin(task.rules, task.project)
    ignored = {item: ignored_codes(item, task.root, task.per_file_ignores) for item in items if isinstance(item, Path)}
    known = [item if isinstance(item, Outcome) else cache.outcome(item, ignored[item]) or item for item in items]
    for outcome in run(known, task, jobs):
        if outcome.digest:
            cache.add(outcome, ignored[outcome.path])
        yield outcome


def reconsidered(outcomes: Sequence[Outcome], task: Task, jobs: int = 0, cache: "Cache | None" = None) -> list[Outcome]:
    """The outcomes, with files settled anew that other files hold back.

    Those are files whose flags for CUDA lead to code without a counterpart elsewhere, and files that use PyTorch/XLA. A
    flag goes from file to file by its name alone, so a variable of the same name holds a test back, wherever it is.
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
    if again:
        task = replace(task, project=replace(task.project, needs_cuda=tuple(sorted(places.items()))))
        outcomes = _anew(outcomes, again, task, jobs, cache)
    return _together_on_xla(outcomes, task, jobs, cache)


def _together_on_xla(outcomes: Sequence[Outcome], task: Task, jobs: int, cache: "Cache | None") -> list[Outcome]:
    """The outcomes, with files settled anew that can not leave PyTorch/XLA because those they go with do not."""
    if not any(finding.rule.startswith("xla-") for outcome in outcomes for finding in outcome.findings):
        return list(outcomes)
    from tpuport.linked import held_on_xla  # only where there is such code

    held = held_on_xla(outcomes)
    for place in sorted(set(held.values())):
        project = replace(task.project, stays_on_xla=place)
        paths = [path for path in held if held[path] == place]
        outcomes = _anew(outcomes, paths, replace(task, project=project), jobs, cache)
    return list(outcomes)


def _anew(
    outcomes: Sequence[Outcome], paths: Sequence[Path], task: Task, jobs: int, cache: "Cache | None"
) -> list[Outcome]:
    settled = run(paths, task, jobs) if cache is None else run_cached(paths, task, cache, jobs)
    anew = {outcome.path: outcome for outcome in settled}
    return [anew.get(outcome.path, outcome) for outcome in outcomes]


def run(items: Sequence[Path | Outcome], task: Task, jobs: int = 0) -> Iterator[Outcome]:
    """Settle every file, in order, one outcome each as soon as it is known.

    `jobs` is worker processes: 0 for one a core, and none at all for a short run.
    Never raises for what a file holds, except a rule's bug under `task.debug`.
    """
    paths = [item for item in items if isinstance(item, Path)]
    number = min(jobs or workers.cores(), len(paths))
    settled: Generator[Outcome]
    if number < 2 or (not jobs and len(paths) < WORTH_WORKERS[task.fix]):
        settled = (settle(path, task) for path in paths)
    else:
        settled = _in_workers(paths, task, number)
    with contextlib.closing(settled):
        for item in items:
            yield item if isinstance(item, Outcome) else next(settled)


def settle(path: Path, task: Task, raw: bytes | None = None) -> Outcome:
    """What one file comes to; `raw` is its content where that is not to be read from the file."""
    return _contained(path, task, lambda: _settle(path, task, raw))


def annotated(outcome: Outcome, task: Task) -> Outcome:
    """The outcome with comments in its new text; a file with findings and no fix is changed by them alone."""
    if outcome.status not in (Status.CHANGED, Status.FINDINGS):
        return outcome
    return _contained(outcome.path, task, lambda: _annotated(outcome, task))


def as_written(outcome: Outcome, task: Task) -> Outcome:
    """The outcome of a file that changes, with what is left at its places in the new text."""

    def placed() -> Outcome:
        findings = kinds.handler_of(outcome.path).moved(outcome.findings, outcome.old, outcome.new)
        return replace(outcome, findings=findings)

    return _contained(outcome.path, task, placed)


def _contained(path: Path, task: Task, work: Callable[[], Outcome]) -> Outcome:
    """The outcome of work on one file, whatever happens there: a failure costs only that file."""
    try:
        with workers.no_collections(), _time_limit(task.time_limit), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's remarks on the user's literals and escapes
            return _outcome(path, task, work)
    except _TookTooLong:
        return Outcome(path, Status.FAILED, f"took longer than {task.time_limit:g} s (time-limit in the settings)")


def _outcome(path: Path, task: Task, work: Callable[[], Outcome]) -> Outcome:
    try:
        return work()
    except text.Unreadable as error:
        return error.outcome
    except kinds.Unparsed as error:
        return Outcome(path, Status.SKIPPED, str(error), line=error.line)
    except SyntaxError as error:
        reason = f"syntax error, line {error.lineno or '?'}: {error.msg}"
        if OLD_PYTHON.match(error.msg):
            reason = f"syntax error, line {error.lineno}: this is Python 2, which has to become Python 3 first"
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


def _settle(path: Path, task: Task, raw: bytes | None) -> Outcome:
    content = text.read_bytes(path, task.max_size) if raw is None else raw
    source = text.decode(content, path).text
    rules = _rules_for(path, task)
    handler = kinds.handler_of(path)
    everything = handler.findings(source, task.project, rules)
    findings = tuple(finding for finding in everything if finding.ignored is None)
    ignored = tuple(finding for finding in everything if finding.ignored is not None)
    if not task.fix or not any(_applies(finding, task) for finding in findings):
        status = Status.FINDINGS if findings else Status.UNCHANGED
        return Outcome(path, status, findings=findings, ignored=ignored, digest=kinds.digest(path, content))
    done = handler.rewrite(source, task.project, rules, unsafe=task.unsafe, line_length=task.line_length)
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


def _annotated(outcome: Outcome, task: Task) -> Outcome:
    changed = outcome.status is Status.CHANGED
    old = outcome.old if changed else text.read(outcome.path, task.max_size).text
    new = outcome.new if changed else old
    handler = kinds.handler_of(outcome.path)
    commented = handler.annotate(new, handler.moved(outcome.findings, old, new))
    return outcome if commented == new else replace(outcome, status=Status.CHANGED, old=old, new=commented)


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


_task: Task
"""The run's task in a worker process, sent once rather than with every file."""


def _start_worker(task: Task) -> None:
    global _task
    _task = task


def _settle_chunk(paths: Sequence[Path]) -> list[Outcome]:
    return [settle(path, _task) for path in paths]


def _in_workers(paths: Sequence[Path], task: Task, number: int) -> Generator[Outcome]:
    """Settle chunks in worker processes, in order. A process that dies costs the one file that killed it."""
    import tpuport.match  # before the fork, so that no worker has to import it again

    if task.fix:
        import tpuport.rewrite  # noqa: F401 - likewise
    size = max(1, min(_CHUNK, len(paths) // (4 * number)))
    chunks: deque[Sequence[Path]] = deque(paths[start : start + size] for start in range(0, len(paths), size))
    while chunks:
        broken = yield from _until_broken(chunks, task, number)
        if broken:
            for path in chunks.popleft():
                alone = yield from _until_broken(deque([[path]]), task, 1)
                if alone:
                    yield Outcome(path, Status.FAILED, "killed the process that worked on it (memory, or a crash)")


def _until_broken(chunks: deque[Sequence[Path]], task: Task, number: int) -> Generator[Outcome, None, bool]:
    """Take chunks off the left as they are done; True if a worker died, with the chunks not done left in place."""
    from concurrent.futures.process import BrokenProcessPool

    with workers.pool(number, _start_worker, task) as pool:
        with workers.no_interrupt():
            futures = deque(pool.submit(_settle_chunk, chunk) for chunk in chunks)
        while futures:
            try:
                outcomes = futures[0].result()
            except BrokenProcessPool:
                return True
            futures.popleft()
            chunks.popleft()
            yield from outcomes
    return False
