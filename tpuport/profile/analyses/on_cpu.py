"""Operations of a step that ran on the CPU although they are part of the device's work, by their lines."""

from dataclasses import dataclass

from tpuport.profile.analyses.advice import ON_CPU_FALLBACK, ON_CPU_FROM_DEVICE, ON_CPU_IN_MODEL, missing_kernel
from tpuport.profile.modules import Module, module_of
from tpuport.profile.places import Place, Places
from tpuport.profile.records import CpuOperation, CpuReason, Operation, Phase, Step
from tpuport.profile.session import Session

_ADVICE = {
    CpuReason.FROM_DEVICE: ON_CPU_FROM_DEVICE,
    CpuReason.IN_MODEL: ON_CPU_IN_MODEL,
}


@dataclass(frozen=True, slots=True)
class OnCpuRow:
    """One operation at one line."""

    place: Place | None
    module: Module | None
    operation: str
    reason: CpuReason
    plain: str
    """What happens, in a sentence."""
    count: int
    """Times a step."""
    source: str
    """The line's text."""
    edit: str
    """What to change."""
    rule: str
    """Name of the lint rule that finds such lines."""


@dataclass(frozen=True, slots=True)
class OnCpu:
    """What the watched step of eager mode has shown; `watched` says whether there was one."""

    watched: bool
    rows: tuple[OnCpuRow, ...]


def analyse_on_cpu(session: Session) -> OnCpu:
    """Return one row for each operation and line, in the order of the source."""
    rows: list[OnCpuRow] = []
    watched = False
    for run in session.runs:
        watched = watched or any(step.phase is Phase.WATCHED for step in run.records.of(Step))
        places = Places(run.records, session.plan.directory)
        rows += [_row(session, places, item, item.why) for item in run.records.of(CpuOperation)]
        fell_back = (item for item in run.records.of(Operation) if item.name in run.fallbacks)
        rows += [_row(session, places, item, CpuReason.FALLBACK) for item in fell_back]
    return OnCpu(watched, tuple(sorted(rows, key=lambda row: (str(row.place and row.place.file), _line(row)))))


def _row(session: Session, places: Places, item: CpuOperation | Operation, reason: CpuReason) -> OnCpuRow:
    place = places.place(item.frame)
    advice = missing_kernel(item.name, ON_CPU_FALLBACK) if reason is CpuReason.FALLBACK else _ADVICE[reason]
    return OnCpuRow(
        place=place,
        module=module_of(item.module),
        operation=item.name,
        reason=reason,
        plain=advice.plain,
        count=item.count,
        source=session.sources.at(place),
        edit=advice.edit,
        rule=advice.rule,
    )


def _line(row: OnCpuRow) -> int:
    return row.place.line if row.place else 0
