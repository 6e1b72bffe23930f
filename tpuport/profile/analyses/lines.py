"""Where in the source the estimated cycles of a step come from."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from tpuport.profile.analyses.chips import StepProgram, compiled_steps
from tpuport.profile.chips.estimates import Cost, Kernels, SourceFrame
from tpuport.profile.chips.hlo import runs_graph_node
from tpuport.profile.figures import Basis, Figure
from tpuport.profile.places import Place, Places
from tpuport.profile.plan import Mode
from tpuport.profile.records import Frame
from tpuport.profile.session import Session

_SHOWN_OPERATIONS = 4


class StepPhase(StrEnum):
    """The part of a training step that an operation belongs to."""

    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"


@dataclass(frozen=True, slots=True)
class LineRow:
    """One line of the source; without a place, one operation that no line is known of."""

    place: Place | None
    source: str
    """The line's text."""
    cycles: Figure
    share: float
    """Of the mode's step, from 0 to 1."""
    phases: dict[StepPhase, float]
    """Cycles by part of the step."""
    operations: tuple[str, ...]
    """Torch operations, the most expensive first; empty for copies that the compiler itself added."""


@dataclass(frozen=True, slots=True)
class LineTable:
    """One mode on one chip: every line, the most expensive first. The rows add up to the step's cycles."""

    chip: str
    mode: Mode
    rows: tuple[LineRow, ...]


@dataclass(frozen=True, slots=True)
class LineCosts:
    """Every chip and mode."""

    tables: tuple[LineTable, ...]


@dataclass(slots=True)
class _Sum:
    phases: Counter[StepPhase] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)


def analyse_lines(session: Session) -> LineCosts:
    """Return one table a chip and mode."""
    tables = []
    for chip, run, programs in compiled_steps(session):
        places = Places(run.records, session.plan.directory)
        tables.append(LineTable(chip, run.mode, _rows(session, places, programs)))
    return LineCosts(tuple(tables))


def _rows(session: Session, places: Places, programs: tuple[StepProgram, ...]) -> tuple[LineRow, ...]:
    sums: defaultdict[tuple[Place | None, str], _Sum] = defaultdict(_Sum)
    for program in programs:
        if program.compiled is None or program.compiled.kernels is None:
            continue
        for cost, place, phase in _attributed(places, program.compiled.kernels):
            cycles = program.runs * cost.cycles
            found = sums[place, "" if place else cost.operation]
            found.phases[phase] += cycles  # type: ignore[assignment]
            found.operations[cost.operation] += cycles  # type: ignore[assignment]
    total = sum(sum(found.phases.values()) for found in sums.values()) or 1
    rows = [
        LineRow(
            place=place,
            source=session.sources.line(place.file, place.line) if place else "",
            cycles=Figure(sum(found.phases.values()), "cycles", Basis.ESTIMATED),
            share=sum(found.phases.values()) / total,
            phases=dict(found.phases),
            operations=tuple(name for name, _ in found.operations.most_common(_SHOWN_OPERATIONS) if name),
        )
        for (place, _), found in sums.items()
    ]
    return tuple(sorted(rows, key=lambda row: -row.cycles.value))


def _attributed(places: Places, kernels: Kernels) -> Iterator[tuple[Cost, Place | None, StepPhase]]:
    """Yield every cost with its line and its part of the step.

    What the compiler added carries no source: it belongs to the part to which most of its program does. A program
    without any source at all was made by autograd's own thread, which has no Python stack, in eager mode.
    """
    known: Counter[StepPhase] = Counter()
    for cost in kernels.costs:
        if cost.frame:
            known[_phase(_stack(kernels, cost.frame))] += cost.cycles  # type: ignore[assignment]
    main = known.most_common(1)[0][0] if known else StepPhase.BACKWARD
    for cost in kernels.costs:
        stack = _stack(kernels, cost.frame)
        if stack:
            yield (
                cost,
                places.of_operation(Frame(entry.file, entry.line, entry.function) for entry in _own(stack)),
                _phase(stack),
            )
        else:
            yield cost, None, StepPhase.BACKWARD if cost.operation else main


def _own(stack: tuple[SourceFrame, ...]) -> tuple[SourceFrame, ...]:
    """Return the part of a stack that led to the operation: in a graph, not the call that had it compiled."""
    for depth in range(len(stack), 0, -1):
        if runs_graph_node(stack[depth - 1]):
            return stack[depth:]
    return stack


def _stack(kernels: Kernels, frame: int) -> tuple[SourceFrame, ...]:
    """Return the stack that ends at an entry of the table, outermost first."""
    stack: list[SourceFrame] = []
    while frame:
        entry = kernels.frames[frame - 1]
        stack.append(entry)
        # A parent stands before its children in the table; anything else would never end.
        frame = entry.parent if entry.parent < frame else 0
    return tuple(reversed(stack))


def _phase(stack: tuple[SourceFrame, ...]) -> StepPhase:
    """Return the part of the step in which an operation with this stack ran, or was compiled for."""
    if any(part in entry.file for entry in stack for part in _UPDATE):
        return StepPhase.OPTIMIZER
    if any("/torch/autograd/" in entry.file and entry.function in _BACKWARD for entry in stack):
        return StepPhase.BACKWARD
    # A user's autograd.Function: autograd's own thread begins there, while its forward is called from the script.
    return StepPhase.BACKWARD if "/torch/autograd/" in stack[0].file else StepPhase.FORWARD


_UPDATE = ("/torch/optim/", "/torch/nn/utils/clip_grad.py", "/torch/amp/grad_scaler.py")
"""Files of torch that work on gradients once they are there."""
_BACKWARD = frozenset({"backward", "apply_boxed", "_make_grads", "grad", "_engine_run_backward"})
"""Functions of torch.autograd that only a backward pass goes through; a compiled graph's is compiled in it."""
