"""Where in the source the estimated cycles of a step come from."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from tpuport.profile.analyses.attribution import Amounts
from tpuport.profile.analyses.costs import attributed_cycles
from tpuport.profile.figures import Basis, Figure
from tpuport.profile.phases import StepPhase
from tpuport.profile.places import Place
from tpuport.profile.plan import Mode
from tpuport.profile.session import Session

_SHOWN_OPERATIONS = 4


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
    return LineCosts(
        tuple(
            LineTable(chip, found.run.mode, _rows(session, found.amounts)) for chip, found in attributed_cycles(session)
        )
    )


def _rows(session: Session, amounts: Amounts) -> tuple[LineRow, ...]:
    sums: defaultdict[tuple[Place | None, str], _Sum] = defaultdict(_Sum)
    for origin, cycles in amounts.items():
        found = sums[origin.place, "" if origin.place else origin.operation]
        found.phases[origin.phase] += cycles  # type: ignore[assignment]
        found.operations[origin.operation] += cycles  # type: ignore[assignment]
    total = sum(amounts.values()) or 1
    rows = [
        LineRow(
            place=place,
            source=session.sources.at(place),
            cycles=Figure(sum(found.phases.values()), "cycles", Basis.ESTIMATED),
            share=sum(found.phases.values()) / total,
            phases=dict(found.phases),
            operations=tuple([name for name, _ in found.operations.most_common() if name][:_SHOWN_OPERATIONS]),
        )
        for (place, _), found in sums.items()
    ]
    return tuple(sorted(rows, key=lambda row: -row.cycles.value))
