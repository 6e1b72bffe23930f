"""What each module of the models costs: the estimated cycles of a step on a chip, and its executions."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tpuport.profile.analyses.attribution import Amounts
from tpuport.profile.analyses.costs import attributed_cycles, attributed_executions
from tpuport.profile.figures import Basis, Figure
from tpuport.profile.modules import Module
from tpuport.profile.phases import StepPhase
from tpuport.profile.plan import Mode
from tpuport.profile.session import Session


@dataclass(frozen=True, slots=True)
class ModuleRow:
    """One module; without one, what runs outside of all models: most often the loss, the optimizer and the data."""

    module: Module | None
    amount: Figure
    """Of the module and all modules below it."""
    own: Figure
    """Of the module alone. The rows' own amounts add up to the step."""
    share: float
    """`amount` by the mode's step, from 0 to 1."""
    phases: dict[StepPhase, float]
    """`amount` by part of the step."""


@dataclass(frozen=True, slots=True)
class ModuleTable:
    """One mode, on one chip where the amounts are cycles; the largest first."""

    chip: str
    """Empty where the amounts are executions."""
    mode: Mode
    rows: tuple[ModuleRow, ...]


@dataclass(frozen=True, slots=True)
class ModuleCosts:
    """Cycles for every chip and mode, and executions for every mode."""

    cycles: tuple[ModuleTable, ...]
    executions: tuple[ModuleTable, ...]
    """An execution counts for the module of its operation; that of a fused program is shared among its operations."""


def analyse_modules(session: Session) -> ModuleCosts:
    """Return all tables."""
    return ModuleCosts(
        tuple(
            ModuleTable(chip, found.run.mode, _rows(found.amounts, "cycles", Basis.ESTIMATED))
            for chip, found in attributed_cycles(session)
        ),
        tuple(
            ModuleTable("", found.run.mode, _rows(found.amounts, "", Basis.MEASURED))
            for found in attributed_executions(session)
        ),
    )


def _rows(amounts: Amounts, unit: str, basis: Basis) -> tuple[ModuleRow, ...]:
    own: defaultdict[Module | None, float] = defaultdict(float)
    phases: defaultdict[Module | None, Counter[StepPhase]] = defaultdict(Counter)
    for origin, amount in amounts.items():
        own[origin.module] += amount
        for module in _with_parents(origin.module):
            phases[module][origin.phase] += amount  # type: ignore[assignment]
    total = sum(amounts.values()) or 1
    rows = [
        ModuleRow(
            module=module,
            amount=Figure(sum(parts.values()), unit, basis),
            own=Figure(own.get(module, 0.0), unit, basis),
            share=sum(parts.values()) / total,
            phases=dict(parts),
        )
        for module, parts in phases.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.amount.value, str(row.module or ""))))


def _with_parents(module: Module | None) -> Iterator[Module | None]:
    yield module
    while module is not None and module.path:
        module = Module(module.root, module.path.rpartition(".")[0])
        yield module
