"""One look at the bytes of every file: which ones are to be parsed, and what all of them say of the run together."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tpuport import kinds, workers
from tpuport.kinds import Look
from tpuport.model import Facts, Outcome, Status
from tpuport.source import text

if TYPE_CHECKING:
    from tpuport.cache import Cache

WORTH_SURVEYORS = 400
"""Below so many files to look at, starting worker processes takes longer than they save."""

_SURVEYED = 50
"""Files whose bytes a worker looks at in one go."""


@dataclass(frozen=True, slots=True)
class Survey:
    """A run's files after one look at their bytes: a Path is still to be parsed, everything else is settled."""

    items: tuple[Path | Outcome, ...]
    facts: Facts


def survey(
    found: Iterable[Path | Outcome], max_size: int = text.MAX_SIZE, cache: "Cache | None" = None, jobs: int = 0
) -> Survey:
    """Read every file once: settle those with nothing to match, and gather what the rules must know of all of them.

    `jobs` is worker processes, as for `run`; a cache that knows files is quicker without any.
    """
    found = list(found)
    paths = [item for item in found if isinstance(item, Path)]
    looked: Iterator[_Looked] | None = None
    if len(paths) >= WORTH_SURVEYORS and (jobs or workers.cores()) > 1 and (cache is None or cache.is_new):
        looked = iter(_look_in_workers(paths, max_size, cache, jobs or workers.cores()))
    items: list[Path | Outcome] = []
    facts: list[Facts] = []
    with workers.no_collections():
        for item in found:
            if isinstance(item, Outcome):
                items.append(item)
                continue
            own = next(looked) if looked is not None else _look_at(item, max_size, cache)
            if isinstance(own, Outcome):
                items.append(own)
                continue
            items.append(item if own is not None and own.matches else Outcome(item, Status.UNCHANGED))
            if own is not None:
                facts.append(own.facts)
    return Survey(tuple(items), together(facts))


_Looked: TypeAlias = "Look | Outcome | None"
"""What one file tells, or how it ended; None if it holds nothing to match and nothing to tell."""


def _look_at(path: Path, max_size: int, cache: "Cache | None") -> _Looked:
    try:
        raw = text.read_bytes(path, max_size)
        if cache is not None:
            known, look = cache.known_look(path, raw)
            if known:
                return look
        look = kinds.handler_of(path).look(path, raw)
    except text.Unreadable as error:
        return error.outcome
    if cache is not None:
        cache.add_look(path, look)
    return look


def _look_in_workers(paths: Sequence[Path], max_size: int, cache: "Cache | None", number: int) -> list[_Looked]:
    """What every file says, looked at in worker processes; where one of those dies, in this process."""
    from concurrent.futures.process import BrokenProcessPool

    chunks = [paths[start : start + _SURVEYED] for start in range(0, len(paths), _SURVEYED)]
    looked: list[_Looked] = []
    try:
        with workers.pool(number) as pool:
            with workers.no_interrupt():
                futures = [pool.submit(_look_at_chunk, chunk, max_size, cache is not None) for chunk in chunks]
            for chunk, future in zip(chunks, futures, strict=True):
                for path, (key, own) in zip(chunk, future.result(), strict=True):
                    if cache is not None and key:
                        cache.meet(path, key)
                        if not isinstance(own, Outcome):
                            cache.add_look(path, own)
                    looked.append(own)
    except BrokenProcessPool:
        looked += [_look_at(path, max_size, cache) for path in paths[len(looked) :]]
    return looked


_selects = False
"""Whether a file that this worker process looked at selects a device: it speaks for all."""


def _look_at_chunk(paths: Sequence[Path], max_size: int, caching: bool) -> list[tuple[bytes, _Looked]]:
    """What each file says, with the digest of its text for a cache."""
    global _selects
    found: list[tuple[bytes, _Looked]] = []
    with workers.no_collections():
        for path in paths:
            key = b""
            own: _Looked
            try:
                raw = text.read_bytes(path, max_size)
                key = kinds.digest(path, raw) if caching else b""
                own = kinds.handler_of(path).look(path, raw, selection=caching or not _selects)
            except text.Unreadable as error:
                own = error.outcome
            _selects = _selects or (isinstance(own, Look) and own.facts.selects_device)
            found.append((key, own))
    return found


def facts_of(path: Path, raw: bytes) -> Facts:
    """What a run over one text knows, which is the content of `path` or is to become it."""
    try:
        look = kinds.handler_of(path).look(path, raw)
    except text.Unreadable:
        return Facts()  # its outcome will say so
    return look.facts if look else Facts()


def together(facts: Sequence[Facts]) -> Facts:
    """What the facts of all files come to."""
    return Facts(
        cuda_methods=_all_of(fact.cuda_methods for fact in facts),
        defers_cuda=any(fact.defers_cuda for fact in facts),
        selects_device=any(fact.selects_device for fact in facts),
        imported_names=_all_of(fact.imported_names for fact in facts),
        device_names=_all_of(fact.device_names for fact in facts),
        backend_names=_all_of(fact.backend_names for fact in facts),
        uses_torch=any(fact.uses_torch for fact in facts),
        autocasts=any(fact.autocasts for fact in facts),
    )


def _all_of(names: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(sorted(set().union(*names)))
