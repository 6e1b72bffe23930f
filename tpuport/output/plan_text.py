"""The plan of a port for the terminal: one page."""

from collections.abc import Iterator

from tpuport.account import Group, Site, count
from tpuport.output.findings import line_of, sentence
from tpuport.output.style import Line, Sheet, write
from tpuport.output.style import count as counted
from tpuport.plan import Plan

KINDS = 3
"""Different things that one rule says of its sites, before the rest is only counted."""

MOST = 5
"""Rules named for what is automatic before the rest is only counted."""


def render(plan: Plan, sheet: Sheet) -> None:
    """Write the page."""
    write(sheet, _lines(plan))


def _lines(plan: Plan) -> Iterator[Line]:
    told = plan.account
    yield [(summary(plan), "bold")]
    if plan.areas:
        yield from ([], [("Readiness by area", "bold")])
        width = max(4, *(len(area.name) for area in plan.areas))
        yield [(f"{'area':<{width}}  automatic  for you  works", "bold")]
        for area in plan.areas:
            yield [
                (f"{area.name:<{width}}  ", ""),
                (f"{area.automatic or '–':>9}", "green"),
                (f"  {area.left or '–':>7}", "yellow"),
                (f"  {area.works or '–':>5}", ""),
            ]
    if told.rewritten:
        yield from ([], [("Automatic", "bold")], [(automatic(plan), "")])
    if told.left:
        yield from ([], [("For you, lowest effort first", "bold")])
        for group in told.left:
            yield from _work(group)
    if told.hints:
        yield from ([], [("Beside the port", "bold")], [(hints(plan), "")])
    if plan.blockers:
        yield from ([], [("Blockers among what the code depends on", "bold")])
        for blocker in plan.blockers:
            yield [(blocker.what, "bold"), (f": {blocker.stand_in}" if blocker.stand_in else "", "")]
            yield [(f"  {places(blocker.sites)}", "dim")]
    if told.unread:
        yield from ([], [("Not read", "bold")])
        yield from ([(f"{outcome.path}: {outcome.status}: {outcome.reason}", "")] for outcome in told.unread)
    yield from ([], [("Next", "bold")])
    for number, step in enumerate(plan.steps, 1):
        yield [(f"{number}. ", ""), (step.command, "bold cyan"), (f"  # {step.why}", "dim")]
    if plan.notes:
        yield []
        yield from ([("note", "bold"), (f": {note}", "")] for note in plan.notes)


def summary(plan: Plan) -> str:
    """How many sites there are, and what becomes of them."""
    told = plan.account
    if not plan.sites:
        return f"{counted(plan.files, 'file')}: nothing that speaks of CUDA."
    automatic = count(told.rewritten)
    share = round(100 * automatic / plan.sites)
    return (
        f"{counted(plan.files, 'file')}, {counted(plan.sites, 'site')}: tpuport rewrites {automatic} ({share}%), "
        f"{_number(count(told.left), 'needs', 'need')} a person, {_number(count(told.works), 'works', 'work')} as "
        f"{'it stands' if count(told.works) == 1 else 'they stand'}."
    )


def _number(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def automatic(plan: Plan) -> str:
    """What is rewritten, by its most frequent rules."""
    groups = sorted(plan.account.rewritten, key=lambda group: (-len(group.sites), group.rule.code))
    most = ", ".join(f"{group.rule.name} {len(group.sites)}" for group in groups[:MOST])
    rest = f", and those of {counted(len(groups) - MOST, 'other rule')}" if len(groups) > MOST else ""
    return f"{counted(count(groups), 'site')} in {counted(plan.changed, 'file')}: {most}{rest}."


def _work(group: Group) -> Iterator[Line]:
    kinds = group.kinds()
    yield [
        (f"{group.rule.effort:<6}  ", "yellow"),
        (f"{group.rule.code} {group.rule.name}", "bold"),
        (f"  {places(kinds[0])}", "dim"),
    ]
    yield [(f"        {sentence(kinds[0][0][1])}", "")]
    for sites in kinds[1:KINDS]:
        yield [(f"        and at {places(sites)}", "dim")]
        yield [(f"        {sentence(sites[0][1])}", "")]
    rest = sum(len(sites) for sites in kinds[KINDS:])
    if rest:
        yield [(f"        and {counted(rest, 'site')} of other kinds", "dim")]


def hints(plan: Plan) -> str:
    """How often lint says something that is no matter of CUDA, and of what."""
    groups = sorted(plan.account.hints, key=lambda group: (-len(group.sites), group.rule.code))
    most = ", ".join(f"{group.rule.name} {len(group.sites)}" for group in groups[:MOST])
    number = count(groups)
    shown = "`tpuport lint --severity info` shows them" if number > 1 else "`tpuport lint --severity info` shows it"
    return f"{counted(number, 'hint')} on what a TPU runs in another way or slowly, as {most}: {shown}."


def places(sites: tuple[Site, ...]) -> str:
    """The first site, and how many more there are."""
    path, finding = sites[0]
    more = f" and {len(sites) - 1} more" if len(sites) > 1 else ""
    return f"{path}:{line_of(finding)}{more}"
