"""What a run over a project comes to, by rule and effort: the account of a migration, and the plan of a port."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tpuport.engine import Report
from tpuport.model import Effort, Finding, Outcome, Rule, Severity, Status

Site = tuple[Path, Finding]

LINT_ONLY = "tpu"
"""The area of the rules about what a TPU does with torch's own operators: nothing to migrate, and lint's to say."""

_WITH_OTHERS = "it moves together with "
"""What begins the reason of a site that waits for another one."""


@dataclass(frozen=True, slots=True)
class Group:
    """The sites of one rule, in the order of the run."""

    rule: Rule
    sites: tuple[Site, ...]

    @property
    def files(self) -> int:
        """How many files they are in."""
        return len({path for path, _ in self.sites})

    def kinds(self) -> list[tuple[Site, ...]]:
        """The sites by what is said of them, most first; those that only wait for others come last."""
        found: dict[str, list[Site]] = {}
        for site in self.sites:
            said = site[1].reason or site[1].message
            found.setdefault(_WITH_OTHERS if said.startswith(_WITH_OTHERS) else said, []).append(site)
        ranked = sorted(found.items(), key=lambda item: (item[0] == _WITH_OTHERS, -len(item[1])))
        return [tuple(sites) for _, sites in ranked]


@dataclass(frozen=True, slots=True)
class Account:
    """All sites of a run: rewritten, left for a person, and those that work as they stand."""

    rewritten: tuple[Group, ...]
    left: tuple[Group, ...]
    """Lowest effort first, then by code."""
    works: tuple[Group, ...]
    hints: tuple[Group, ...]
    """What lint says beside: of rules that have nothing to migrate, and are in none of the others."""
    unread: tuple[Outcome, ...]
    """Files that were skipped or failed."""

    def left_with(self, effort: Effort) -> tuple[Group, ...]:
        """What is left of one effort."""
        return tuple(group for group in self.left if group.rule.effort is effort)


def count(groups: Iterable[Group]) -> int:
    """Sites in all of `groups`."""
    return sum(len(group.sites) for group in groups)


def account(report: Report, rules: Sequence[Rule]) -> Account:
    """The account of a run; `rules` are those that took part."""
    by_code = {rule.code: rule for rule in rules}
    ported = [site for site in report.findings if by_code[site[1].code].area != LINT_ONLY]
    left = _groups([site for site in ported if site[1].severity is not Severity.INFO], by_code)
    return Account(
        rewritten=_groups(report.fixed, by_code),
        left=tuple(sorted(left, key=lambda group: (list(Effort).index(group.rule.effort), group.rule.code))),
        works=_groups([site for site in ported if site[1].severity is Severity.INFO], by_code),
        hints=_groups([site for site in report.findings if by_code[site[1].code].area == LINT_ONLY], by_code),
        unread=report.of(Status.SKIPPED, Status.FAILED),
    )


def _groups(sites: Iterable[Site], rules: dict[str, Rule]) -> tuple[Group, ...]:
    found: dict[str, list[Site]] = {}
    for path, finding in sites:
        found.setdefault(finding.code, []).append((path, finding))
    return tuple(Group(rules[code], tuple(found[code])) for code in sorted(found))
