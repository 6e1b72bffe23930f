"""What the report finds at lines of the source, in one form for all formats: where, what happens, what to do.

Lines of which the same is to be said share one finding.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from tpuport.output.profile_headline import compiles
from tpuport.output.profile_units import duration, percent
from tpuport.output.style import count
from tpuport.profile.analyses import Report
from tpuport.profile.analyses.advice import NOTHING_TO_DO
from tpuport.profile.analyses.recompiles import RecompileRow
from tpuport.profile.figures import Figure
from tpuport.profile.places import Place

_SHOWN_CHANGES = 6


@dataclass(frozen=True, slots=True)
class Site:
    """A line, and what is to be known of it alone: how often, what it costs."""

    place: Place | None
    source: str
    facts: tuple[str, ...]
    weight: float = 0.0
    """What it costs, to compare it with others of its kind."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What happens at some lines, and what to do about it."""

    what: str
    sites: tuple[Site, ...]
    plain: str = ""
    """What that is, in other words; may be empty, as the next two."""
    remedies: tuple[str, ...] = ()
    rule: str = ""
    """The lint rule that finds it."""
    bad: bool = False
    """Whether it has to be looked at first."""

    @property
    def to_do(self) -> str:
        """The edit that ends it; empty where there is none to make."""
        return next((text for text in self.remedies if text != NOTHING_TO_DO), "")


@dataclass(frozen=True, slots=True)
class Section:
    """All findings of one kind; `key` names the kind. Without findings the title says that there are none."""

    key: str
    title: str
    findings: tuple[Finding, ...]


def finding_sections(report: Report) -> list[Section]:
    """Return every kind of which something is known, in the order of the report."""
    sections: list[Callable[[Report], Section | None]] = [
        _graph_breaks, _recompiles, _host_waits, _input_waits, _on_cpu,
    ]  # fmt: skip
    return [section for make in sections if (section := make(report))]


def first_edits(sections: Iterable[Section]) -> Iterator[tuple[Finding, Site]]:
    """Yield what to do first: of every kind the edit that ends what costs most, with a line of it; none twice."""
    said: set[str] = set()
    for section in sections:
        useful = [finding for finding in section.findings if finding.to_do and finding.to_do not in said]
        if useful:
            first = max(useful, key=lambda finding: sum(site.weight for site in finding.sites))
            said.add(first.to_do)
            yield first, first.sites[0]


def rule_note(finding: Finding) -> str:
    """Return where more is said of such lines; empty where no rule is about them."""
    return f"`tpuport rules {finding.rule}` says more." if finding.rule and finding.to_do else ""


def _graph_breaks(report: Report) -> Section | None:
    rows = report.graph_breaks.rows
    if not rows and not compiles(report):
        return None
    found = (
        Finding(
            f"{row.reason}{f' ({row.id})' if row.id else ''}",
            (Site(row.place, row.source, (f"{row.count}×", *_more_graphs(row.graphs)), row.graphs),),
            row.plain or row.explanation,
            (row.edit,) if row.edit else row.hints,
            row.rule,
        )
        for row in rows
    )
    return Section("graph-breaks", f"Graph breaks: {len(rows) or 'none'}", _shared(found))


def _more_graphs(graphs: int) -> list[str]:
    return [f"+{count(graphs, 'graph')}"] if graphs else []


def _recompiles(report: Report) -> Section | None:
    found = report.recompiles
    if not found.rows and not found.limits and not compiles(report):
        return None
    findings = [
        Finding("The recompile limit was reached: it runs eagerly from then on", (Site(row.place, "", ()),), row.reason,
                bad=True)
        for row in found.limits
    ]  # fmt: skip
    for row in found.rows:
        what = f"{row.cause}: {_changes(row)}" if row.changes else row.cause
        site = Site(row.place, row.source, (f"{row.count}×", *_cost(row.seconds, "lost")), row.seconds.value)
        findings.append(Finding(what, (site,), row.plain, _remedies(row), row.rule))
    times = sum(row.count for row in found.rows)
    return Section("recompiles", f"Recompiles: {times or 'none'}", _shared(findings))


def _changes(row: RecompileRow) -> str:
    more = ", …" if len(row.changes) > _SHOWN_CHANGES else ""
    return f"{', '.join(row.changes[:_SHOWN_CHANGES])}{more}"


def _remedies(row: RecompileRow) -> tuple[str, ...]:
    edits = (row.edit,) if row.edit else ()
    if row.buckets is None:
        return edits
    sizes = " or ".join(map(str, row.buckets.sizes))
    saved, padding = count(row.buckets.saved, "compilation"), percent(row.buckets.padding)
    return (*edits, f"Padding to {sizes} would save {saved} of the sizes seen, and make {padding} of the data padding.")


def _host_waits(report: Report) -> Section | None:
    rows = report.host_syncs.rows
    if not report.host_syncs.counted:
        return None
    found = (
        Finding(
            "The host waits for the device",
            (
                Site(
                    row.place,
                    row.source,
                    (row.what, f"{row.count:g}× a step", *_cost(row.seconds, "a step")),
                    row.seconds.value if row.seconds else 0.0,
                ),
            ),
            remedies=(row.edit,) if row.edit else (),
            rule=row.rule,
        )
        for row in rows
    )
    return Section("host-waits", f"Host waits in a step: {len(rows) or 'none'}", _shared(found))


def _input_waits(report: Report) -> Section | None:
    """The waits of the mode in which they take most of a step; what is short is not shown."""
    rows = [row for row in report.inputs.rows if row.edit and row.mode is report.inputs.rows[0].mode]
    found = (
        Finding(
            f"The step waits for {row.what}",
            (Site(row.place, row.source, (*_cost(row.seconds, "a step"), f"{percent(row.share)} of it"), row.share),),
            remedies=(row.edit,),
        )
        for row in rows
    )
    return Section("input-waits", f"Waits for input in a step ({rows[0].mode.value})", _shared(found)) if rows else None


def _on_cpu(report: Report) -> Section | None:
    rows = report.on_cpu.rows
    found = (
        Finding(
            row.plain,
            (Site(row.place, row.source, (row.operation, f"{row.count}× a step"), row.count),),
            remedies=(row.edit,) if row.edit else (),
            rule=row.rule,
        )
        for row in rows
    )
    return Section("on-cpu", f"Operations on the CPU in a step: {len(rows)}", _shared(found)) if rows else None


def _cost(seconds: Figure | None, unit: str) -> list[str]:
    return [f"{duration(seconds.value)} {unit} ({seconds.basis.value})"] if seconds and seconds.value else []


def _shared(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Put the lines together of which the same is said, in the order in which they come."""
    groups: dict[Finding, list[Site]] = {}
    for finding in findings:
        groups.setdefault(replace(finding, sites=()), []).extend(finding.sites)
    return tuple(replace(finding, sites=tuple(sites)) for finding, sites in groups.items())
