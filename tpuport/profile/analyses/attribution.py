"""Which line, module and part of the step the programs of a mode belong to.

A program bears the Python stacks of the operations that it was first made for. Three things are missing there, and
come from the watched step of eager mode, in which every operation was watched:

- in eager mode, torch_tpu takes a program again for the same operation elsewhere: every execution is known by itself;
- in other modes, a program that runs several times in a step serves places that do the same work in eager mode: it is
  shared among those that no other program of the mode belongs to;
- gradients that autograd computes on threads without any Python are shared as the same operation is in eager mode,
  else as the operation that they are the gradient of.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tpuport.profile.analyses.programs import step_programs
from tpuport.profile.chips.estimates import Kernels, SourceFrame
from tpuport.profile.chips.hlo import runs_graph_node
from tpuport.profile.contents import Contents
from tpuport.profile.modules import Module, common_module, innermost_module, module_of
from tpuport.profile.phases import StepPhase, phase_of
from tpuport.profile.places import Place, Places
from tpuport.profile.plan import Mode
from tpuport.profile.records import Frame, Operation, Program, Records
from tpuport.profile.session import Run, Session


@dataclass(frozen=True, slots=True)
class Origin:
    """Where something comes from."""

    place: Place | None
    module: Module | None
    phase: StepPhase
    operation: str = ""
    """Name of the torch operation, empty for what the compiler itself added."""

    @property
    def spot(self) -> "Origin":
        """The same without the operation."""
        return replace(self, operation="")


Amounts = dict[Origin, float]
"""Cycles or executions of a step, by origin."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one torch operation at one place has in one run of a program."""

    stack: tuple[SourceFrame, ...]
    operation: str
    amount: float


Parts = Sequence[Part]


def parts_of_kernels(kernels: Kernels) -> Parts:
    """Return the estimated cycles of a program."""
    return [Part(_stack(kernels.frames, cost.frame), cost.operation, cost.cycles) for cost in kernels.costs]


def parts_of_contents(contents: Contents | None) -> Parts:
    """Return the execution of a program, shared among its operations."""
    if contents is None or not contents.operations:
        return [Part((), "", 1.0)]
    share = 1 / len(contents.operations)
    return [Part(_stack(contents.frames, item.frame), item.operation, share) for item in contents.operations]


def origins_of_contents(places: Places, contents: Contents | None) -> Iterator[Origin]:
    """Yield where the operations of a program come from, by its own stacks."""
    yield from (origin for origin, _ in _own_origins(places, parts_of_contents(contents)))


@dataclass(frozen=True, slots=True)
class Attributed:
    """One mode: amounts by origin."""

    run: Run
    amounts: Amounts


def attribute(session: Session, parts: Iterable[tuple[Run, dict[str, Parts]]]) -> Iterator[Attributed]:
    """Yield the amounts of each run; `parts` holds its programs by digest, eager mode best first."""
    trace = _Watched(session)
    reference: Amounts = {}
    for run, programs in parts:
        places = Places(run.records, session.plan.directory)
        runs = {digest: count for digest, count in step_programs(run.records).items() if digest in programs}
        own = {digest: [*_own_origins(places, items)] for digest, items in programs.items()}
        amounts: defaultdict[Origin, float] = defaultdict(float)
        found = _watched(trace, runs, own) if run.mode is Mode.EAGER else _shared(trace, runs, own)
        for origin, amount in found:
            amounts[origin] += amount
        placed = _with_gradients(amounts, reference)
        if run.mode is Mode.EAGER:
            reference = placed
        yield Attributed(run, placed)


_Own = list[tuple[Origin, float]]


class _Watched:
    """The watched step of eager mode."""

    def __init__(self, session: Session) -> None:
        self.by_program: defaultdict[str, Counter[Origin]] = defaultdict(Counter)
        self._work: defaultdict[Origin, Counter[tuple[str, str]]] = defaultdict(Counter)
        run = next((run for run in session.runs if run.mode is Mode.EAGER), None)
        if run is not None:
            self._read(run.records, Places(run.records, session.plan.directory))
        self._equals: defaultdict[frozenset[tuple[tuple[str, str], int]], list[Origin]] = defaultdict(list)
        for spot, work in self._work.items():
            self._equals[frozenset(work.items())].append(spot)

    def _read(self, records: Records, places: Places) -> None:
        digests = {program.index: program.sha256 for program in records.of(Program)}
        for item in records.of(Operation):
            origin = Origin(places.place(item.frame), module_of(item.module), item.phase, item.name)
            for index, count in item.programs.items():
                digest = digests.get(index, "")
                self.by_program[digest][origin] += item.count * count
                self._work[origin.spot][item.name, digest] += item.count * count

    def equals(self, spot: Origin) -> list[Origin]:
        """Return the spots that do the same work as `spot` does, itself included."""
        return self._equals.get(frozenset(self._work[spot].items()), [spot]) if spot in self._work else [spot]


def _watched(trace: _Watched, runs: dict[str, int], own: dict[str, _Own]) -> Iterator[tuple[Origin, float]]:
    """Yield what each execution of eager mode amounts to, at the place where it was seen."""
    seen, spare = _seen(trace, runs, own)
    for digest, count in runs.items():
        places = seen.get(digest) or spare.get(_main_operation(own[digest]), _NOTHING)
        total = sum(places.values())
        # Executions beyond those that were seen belong where the program was made.
        of_seen = min(count, total)
        for origin, amount in own[digest]:
            for place, times in places.items():
                yield replace(place, operation=origin.operation), amount * times * of_seen / total
            if count > of_seen:
                yield origin, amount * (count - of_seen)


_Seen = dict[str, Counter[Origin]]
_NOTHING: Counter[Origin] = Counter()


def _seen(trace: _Watched, runs: dict[str, int], own: dict[str, _Own]) -> tuple[_Seen, _Seen]:
    """Return the origins of each program's executions in a step, and those left over, by operation.

    In the watched step autograd adds gradients up with the program that other additions run, not in place as otherwise:
    that program is then seen too often, and the other one never.
    """
    seen: _Seen = {}
    spare: defaultdict[str, Counter[Origin]] = defaultdict(Counter)
    for digest, found in trace.by_program.items():
        wanted = runs.get(digest, 0)
        phase = own[digest][0][0].phase if own.get(digest) else None
        for origin, count in sorted(found.items(), key=lambda item: item[0].phase is not phase):
            taken = min(count, wanted)
            wanted -= taken
            if taken:
                seen.setdefault(digest, Counter())[origin] += taken
            if count > taken:
                spare[_plain(origin.operation)][origin] += count - taken
    return seen, spare


def _main_operation(own: _Own) -> str:
    return _plain(max(own, key=lambda item: item[1])[0].operation) if own else ""


def _plain(operation: str) -> str:
    """Return an operation's name, be it in place or not."""
    return operation.strip("_")


def _shared(trace: _Watched, runs: dict[str, int], own: dict[str, _Own]) -> Iterator[tuple[Origin, float]]:
    """Yield what each program amounts to, shared among the places that it serves."""
    claims: defaultdict[Origin, set[str]] = defaultdict(set)
    for digest in runs:
        for origin, _ in own[digest]:
            claims[origin.spot].add(digest)
    for digest, count in runs.items():
        for origin, amount in own[digest]:
            spots = [origin.spot]
            if count > 1 and origin.place is not None:
                spots += [spot for spot in trace.equals(origin.spot) if not claims[spot]]
            for spot in spots:
                yield replace(spot, operation=origin.operation), amount * count / len(spots)


def _own_origins(places: Places, parts: Parts) -> Iterator[tuple[Origin, float]]:
    """Yield every part of a program with where its own stack says that it comes from.

    What the compiler added carries no source: it belongs to the part of the step to which most of its program does, to
    the module that holds all of it, and to its line if it has one only. A program without any source at all was made by
    autograd's own thread, which has no Python stack, in eager mode.
    """
    located = {part: _located(places, part) for part in parts if part.stack}
    added = _around(parts, located)
    for part in parts:
        if part.stack:
            yield located[part], part.amount
        elif part.operation:
            yield Origin(None, None, StepPhase.BACKWARD, part.operation), part.amount
        else:
            yield added, part.amount


def _located(places: Places, part: Part) -> Origin:
    frames = (Frame(entry.file, entry.line, entry.function) for entry in _own(part.stack))
    module = innermost_module((entry.file, entry.function) for entry in part.stack)
    return Origin(places.of_operation(frames), module, _phase(part.stack), part.operation)


def _around(parts: Parts, located: dict[Part, Origin]) -> Origin:
    """Return what all operations of a program have in common."""
    phases: Counter[StepPhase] = Counter()
    for part in parts:
        if part in located:
            phases[located[part].phase] += part.amount  # type: ignore[assignment]
    main = phases.most_common(1)[0][0] if phases else StepPhase.BACKWARD
    # The module of a gradient may be told by what it is the gradient of only.
    module = common_module(
        origin.module for origin in located.values() if origin.module or origin.phase is not StepPhase.BACKWARD
    )
    lines = {origin.place for origin in located.values()}
    return Origin(lines.pop() if len(lines) == 1 else None, module, main)


def _with_gradients(amounts: Amounts, reference: Amounts) -> Amounts:
    """Give gradients without a line, or without a module, those of what they are gradients of."""
    found: defaultdict[Origin, float] = defaultdict(float)
    for origin, amount in amounts.items():
        shares = _gradient_of(origin, amounts, reference) or {origin: 1.0}
        total = sum(shares.values())
        for place, share in shares.items():
            found[replace(origin, place=place.place, module=place.module)] += amount * share / total
    return dict(found)


def _gradient_of(origin: Origin, amounts: Amounts, reference: Amounts) -> Amounts:
    if origin.phase is not StepPhase.BACKWARD or origin.module is not None or not origin.operation:
        return {}
    name = _plain(origin.operation)
    if origin.place is not None:
        # A line of a model: its module is the one that runs it forward.
        return {
            other: amount
            for other, amount in amounts.items()
            if other.place == origin.place and other.phase is StepPhase.FORWARD and amount
        }
    same = {
        other: amount
        for other, amount in reference.items()
        if other.phase is StepPhase.BACKWARD and _plain(other.operation) == name and other.place is not None and amount
    }
    return same or {
        other: amount
        for other, amount in amounts.items()
        if other.phase is StepPhase.FORWARD and f"{_plain(other.operation)}_backward" == name and amount
    }


def _own(stack: tuple[SourceFrame, ...]) -> tuple[SourceFrame, ...]:
    """Return the part of a stack that led to the operation: in a graph, not the call that had it compiled."""
    for depth in range(len(stack), 0, -1):
        if runs_graph_node(stack[depth - 1]):
            return stack[depth:]
    return stack


def _stack(frames: tuple[SourceFrame, ...], frame: int) -> tuple[SourceFrame, ...]:
    """Return the stack that ends at an entry of the table, outermost first."""
    stack: list[SourceFrame] = []
    while frame:
        entry = frames[frame - 1]
        stack.append(entry)
        # A parent stands before its children in the table; anything else would never end.
        frame = entry.parent if entry.parent < frame else 0
    return tuple(reversed(stack))


def _phase(stack: tuple[SourceFrame, ...]) -> StepPhase:
    return phase_of([(entry.file, entry.function) for entry in stack])
