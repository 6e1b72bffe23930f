"""Worker processes, and what a process does without while it works on many files."""

import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.context import BaseContext


def cores() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def pool(number: int, start: Callable[..., None] | None = None, *arguments: Any) -> "Iterator[ProcessPoolExecutor]":
    """`number` worker processes, each of which calls `start(*arguments)` first.

    When the block ends early (interrupted, or nobody reads on), what the workers are at is of no use any more: they are
    terminated. Inside it raises BrokenProcessPool when one of them dies.
    """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    others = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(number, _context(), _begin, (start, arguments))
    try:
        yield executor
    except BrokenProcessPool:
        raise
    except BaseException:
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


def _begin(start: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the parent decides
    gc.freeze()
    if start is not None:
        start(*arguments)


@contextlib.contextmanager
def no_interrupt() -> Iterator[None]:
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


@contextlib.contextmanager
def no_collections() -> Iterator[None]:
    """A syntax tree is many objects and no garbage: collections while it grows cost half the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
