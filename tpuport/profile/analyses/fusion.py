"""What a mode spares the device against eager mode: which executions are gone, and where they came from."""

from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeVar

from tpuport.profile.analyses.attribution import Amounts, Origin
from tpuport.profile.analyses.costs import attributed_executions
from tpuport.profile.figures import Basis, Figure
from tpuport.profile.modules import Module
from tpuport.profile.places import Place
from tpuport.profile.plan import Mode
from tpuport.profile.session import Session

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Saving:
    """Executions a step of one source, in eager mode and in the other one."""

    before: Figure
    after: Figure
    """A program made of several operations counts for each with its share."""
    saved: float


@dataclass(frozen=True, slots=True)
class OperationSaving:
    """One torch operation."""

    operation: str
    saving: Saving


@dataclass(frozen=True, slots=True)
class ModuleSaving:
    """One module alone, without those below it; without one, what runs outside of all models."""

    module: Module | None
    saving: Saving


@dataclass(frozen=True, slots=True)
class LineSaving:
    """One line of the source; without a place, all that no line is known of."""

    place: Place | None
    source: str
    """The line's text."""
    saving: Saving


@dataclass(frozen=True, slots=True)
class FusionRow:
    """One mode. Each list holds the largest saving first, and adds up to `saving`; a negative one is a cost."""

    mode: Mode
    saving: Saving
    operations: tuple[OperationSaving, ...]
    modules: tuple[ModuleSaving, ...]
    lines: tuple[LineSaving, ...]


@dataclass(frozen=True, slots=True)
class Fusion:
    """Every mode but eager; nothing without it."""

    rows: tuple[FusionRow, ...]


def analyse_fusion(session: Session) -> Fusion:
    """Compare every mode's executions with those of eager mode."""
    found = {item.run.mode: item.amounts for item in attributed_executions(session)}
    eager = found.pop(Mode.EAGER, None)
    if eager is None:
        return Fusion(())
    return Fusion(tuple(_row(session, mode, eager, amounts) for mode, amounts in found.items()))


def _row(session: Session, mode: Mode, eager: Amounts, amounts: Amounts) -> FusionRow:
    operations = _savings(eager, amounts, lambda origin: origin.operation.strip("_"))
    modules = _savings(eager, amounts, lambda origin: origin.module)
    lines = _savings(eager, amounts, lambda origin: origin.place)
    return FusionRow(
        mode,
        _saving(sum(eager.values()), sum(amounts.values())),
        tuple(OperationSaving(name, saving) for name, saving in operations),
        tuple(ModuleSaving(module, saving) for module, saving in modules),
        tuple(LineSaving(place, session.sources.at(place), saving) for place, saving in lines),
    )


def _savings(eager: Amounts, amounts: Amounts, key: Callable[[Origin], K]) -> list[tuple[K, Saving]]:
    before: defaultdict[K, float] = defaultdict(float)
    after: defaultdict[K, float] = defaultdict(float)
    for sums, found in ((before, eager), (after, amounts)):
        for origin, amount in found.items():
            sums[key(origin)] += amount
    savings = [(item, _saving(before[item], after[item])) for item in dict.fromkeys((*before, *after))]
    return sorted(savings, key=lambda item: -item[1].saved)


def _saving(before: float, after: float) -> Saving:
    return Saving(Figure(before, "", Basis.MEASURED), Figure(after, "", Basis.MEASURED), before - after)
