"""What made torch.compile compile a function again."""

import re
from collections import defaultdict
from dataclasses import dataclass, field

from tpuport.profile.analyses.advice import BATCH_SIZE, LENGTH, OTHER_BATCH, Advice
from tpuport.profile.analyses.buckets import Buckets, propose
from tpuport.profile.analyses.guards import EQUAL, SIZE, cause_of, condition
from tpuport.profile.figures import Figure, time_basis
from tpuport.profile.frames import traced_frames
from tpuport.profile.places import Place, Places
from tpuport.profile.plan import Mode
from tpuport.profile.records import Frame, FrameCompiled, FrameStarted, Recompile, Root
from tpuport.profile.session import Run, Session

_BATCH_SIZES = 4
"""More sizes than the whole and the last batch of training and of evaluation have are no sizes of batches."""
_VERSION_PREFIX = re.compile(r"^\d+/(\d+): ")
_POSITIONAL = re.compile(r"\bargs\[(\d+)\]")
_KEYWORD = re.compile(r"\bkwargs\['(\w+)'\]")
_LIMIT = re.compile(r"(recompile_limit|cache_size_limit|recompile limit)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RecompileRow:
    """One cause, in one function."""

    place: Place | None
    """The user's line that depends on what changed, else the function's first line."""
    cause: str
    changes: tuple[str, ...]
    """What it changed from and to, in the order seen, where the guard says so."""
    count: int
    seconds: Figure
    """Time that compiling again took, in the mode that recompiled most."""
    plain: str
    """What that is, in plain words; empty where only the guard says it."""
    edit: str
    """What to change."""
    rule: str
    """Name of the lint rule that finds the cause; empty where there is none."""
    buckets: Buckets | None
    """For a size that takes many values: sizes to pad to."""
    source: str
    """The line's text."""
    modes: tuple[Mode, ...]


@dataclass(frozen=True, slots=True)
class LimitRow:
    """A function that was compiled so often that torch.compile gave up on it: it runs eagerly from then on."""

    place: Place | None
    reason: str
    modes: tuple[Mode, ...]


@dataclass(frozen=True, slots=True)
class Recompiles:
    """Every recompilation, by cause, most frequent first."""

    rows: tuple[RecompileRow, ...]
    limits: tuple[LimitRow, ...]


_Key = tuple[str, int, str]


@dataclass(slots=True)
class _Group:
    place: Place | None
    cause: str
    advice: Advice
    changes: list[str] = field(default_factory=list)
    counts: dict[Mode, int] = field(default_factory=dict)
    seconds: dict[Mode, float] = field(default_factory=dict)
    sizes: set[int] = field(default_factory=set)
    elsewhere: bool = True
    """Whether every call that compiled again came by other lines than the first one."""


def analyse_recompiles(session: Session) -> Recompiles:
    """Return one row a function and cause; with several compiled modes, counts are those of the mode with the most."""
    groups: dict[_Key, _Group] = {}
    limits: defaultdict[tuple[str, int], dict[Mode, tuple[Place | None, str]]] = defaultdict(dict)
    for run in session.runs:
        frames = _Frames(run, session.plan.directory)
        for record in run.records.of(Recompile):
            if not frames.is_artifact(record):
                _add(groups, run.mode, frames, record)
        for place, reason in frames.limits():
            limits[(place.file, place.line) if place else ("", 0)][run.mode] = (place, reason)
    rows = sorted(groups.items(), key=lambda item: (-max(item[1].counts.values()), item[0]))
    return Recompiles(
        tuple(_row(session, group) for _, group in rows),
        tuple(LimitRow(*next(iter(found.values())), tuple(found)) for _, found in sorted(limits.items())),
    )


def _row(session: Session, group: "_Group") -> RecompileRow:
    place, advice = group.place, group.advice
    if advice is BATCH_SIZE and len(group.sizes) > _BATCH_SIZES:
        advice = LENGTH
    elif advice is BATCH_SIZE and group.elsewhere:
        advice = OTHER_BATCH
    return RecompileRow(
        place=place,
        cause=group.cause,
        changes=tuple(dict.fromkeys(group.changes)),
        count=max(group.counts.values()),
        seconds=Figure(max(group.seconds.values()), "s", time_basis(session.plan.device)),
        plain=advice.plain,
        edit=advice.edit,
        rule=advice.rule,
        buckets=propose(group.sizes),
        source=session.sources.at(place),
        modes=tuple(group.counts),
    )


def _add(groups: dict[_Key, _Group], mode: Mode, frames: "_Frames", record: Recompile) -> None:
    guard = frames.decisive_guard(record)
    cause = cause_of(guard)
    change = cause.change
    place = frames.place_of_guard(guard) or frames.place(record.frame_id, record.compile_id)
    key = (place.file if place else "", place.line if place else 0, cause.text)
    group = groups.setdefault(key, _Group(place, cause.text, cause.advice))
    group.elsewhere = group.elsewhere and frames.called_elsewhere(record)
    group.counts[mode] = group.counts.get(mode, 0) + 1
    group.seconds[mode] = group.seconds.get(mode, 0.0) + frames.seconds(record)
    if match := SIZE.match(guard):
        group.sizes |= {int(match["old"]), int(match["new"])}
    elif (match := EQUAL.match(condition(guard))) and change:
        change = f"{match['old'].strip()} → {frames.value_in_version(record, match['name'].strip()) or 'other'}"
    if change:
        group.changes.append(change)


def _version(reason: str) -> int:
    match = _VERSION_PREFIX.match(reason)
    return int(match[1]) if match else -1


class _Frames:
    """What one mode's records say of the frames that were compiled."""

    def __init__(self, run: Run, directory: str) -> None:
        self._places = Places(run.records, directory)
        self._stacks: dict[int, tuple[Frame, ...]] = {}
        self._versions: dict[tuple[int, int], tuple[Frame, ...]] = {}
        for started in run.records.of(FrameStarted):
            self._stacks.setdefault(started.frame_id, started.stack)
            self._versions.setdefault((started.frame_id, started.compile_id), started.stack)
        self._parameters = {root.module: root.parameters for root in run.records.of(Root)}
        self._causes: set[tuple[int, str]] = set()
        self._sizes: defaultdict[tuple[int, str], set[str]] = defaultdict(set)
        self._compiled = {(frame.frame_id, frame.compile_id): frame for frame in run.records.of(FrameCompiled)}

        self._values: dict[tuple[int, int, str], str] = {}
        for record in run.records.of(Recompile):
            for reason in record.reasons:
                equality = condition(self._named(record.frame_id, _VERSION_PREFIX.sub("", reason)))
                if match := EQUAL.match(equality):
                    key = record.frame_id, _version(reason), match["name"].strip()
                    self._values[key] = match["old"].strip()

    def value_in_version(self, record: Recompile, name: str) -> str:
        """Return the value with which the new version was compiled; empty unless a later one says it."""
        return self._values.get((record.frame_id, record.compile_id, name), "")

    def seconds(self, record: Recompile) -> float:
        """Return how long that compilation took."""
        compiled = self._compiled.get((record.frame_id, record.compile_id))
        return compiled.seconds if compiled else 0.0

    def is_artifact(self, record: Recompile) -> bool:
        """Whether this is tpuport's wrapper around a model, compiled again along with the user's functions in it."""
        stack = self._stacks.get(record.frame_id, ())
        compiled = self._compiled.get((record.frame_id, record.compile_id))
        return bool(stack) and not self._places.is_user(stack[-1]) and compiled is not None and not compiled.operations

    def decisive_guard(self, record: Recompile) -> str:
        """Return the guard that says best what changed: there is one for each version compiled so far.

        A size for which a version exists is not what is new, even if the newest version was made for another. Of the
        rest, a cause not seen before in this function comes first, then what the newest version says.
        """
        newest_first = sorted(record.reasons, key=_version, reverse=True)
        guards = [self._named(record.frame_id, _VERSION_PREFIX.sub("", reason)) for reason in newest_first]
        candidates = [guard for guard in guards if not self._fits_some_version(record.frame_id, guard)] or guards
        unseen = [guard for guard in candidates if (record.frame_id, cause_of(guard).text) not in self._causes]
        chosen = (unseen or candidates or [""])[0]
        self._causes.add((record.frame_id, cause_of(chosen).text))
        for guard in guards:
            if match := SIZE.match(guard):
                self._sizes[record.frame_id, f"{match['name']}[{match['dim']}]"] |= {match["old"], match["new"]}
        return chosen

    def _fits_some_version(self, frame_id: int, guard: str) -> bool:
        match = SIZE.match(guard)
        return match is not None and match["new"] in self._sizes[frame_id, f"{match['name']}[{match['dim']}]"]

    def _named(self, frame_id: int, guard: str) -> str:
        """Give a model's arguments the names that its forward() has for them, instead of those of tpuport's wrapper."""
        stack = self._stacks.get(frame_id, ())
        if not stack or self._places.is_user(stack[-1]):
            return guard
        names = self._parameters.get(stack[-1].function, ())

        def name(match: re.Match[str]) -> str:
            position = int(match[1])
            return names[position] if position < len(names) else match[0]

        guard = guard.replace("call.__self__.", "self.")
        return _KEYWORD.sub(r"\1", _POSITIONAL.sub(name, guard))

    def place(self, frame_id: int, compile_id: int) -> Place | None:
        """Return the function's first line; for tpuport's wrapper, the user's line that called the model this time."""
        return self._places.innermost(self._versions.get((frame_id, compile_id), self._stacks.get(frame_id, ())))

    def called_elsewhere(self, record: Recompile) -> bool:
        """Whether the user's lines that led to this version are not those that led to the first one."""
        stacks = self._stacks.get(record.frame_id), self._versions.get((record.frame_id, record.compile_id))
        first, this = ([frame for frame in (stack or ())[:-1] if self._places.is_user(frame)] for stack in stacks)
        return bool(this) and first != this

    def place_of_guard(self, guard: str) -> Place | None:
        """Return the user's line that a guard names as its origin."""
        return self._places.innermost(traced_frames(guard))

    def limits(self) -> list[tuple[Place | None, str]]:
        """Return where the limit of recompilations was reached."""
        return [
            (self.place(frame.frame_id, frame.compile_id), (frame.failure_reason or "").strip().splitlines()[0])
            for frame in self._compiled.values()
            if frame.failure and _LIMIT.search(frame.failure_reason or "")
        ]
