"""The plan of a port as Markdown, for an issue or a page of the project's."""

from collections.abc import Iterator

from tpuport.model import Effort
from tpuport.output.findings import line_of, sentence
from tpuport.output.markdown import cell
from tpuport.output.plan_text import automatic, hints, places, summary
from tpuport.output.style import Sheet
from tpuport.plan import Plan


def render(plan: Plan, sheet: Sheet) -> None:
    """Write the page."""
    sheet.file.write("\n".join(_lines(plan)) + "\n")


def _lines(plan: Plan) -> Iterator[str]:
    told = plan.account
    yield from ("# Plan of the port to TPU", "", summary(plan))
    if plan.areas:
        yield from ("", "## Readiness by area", "", "| area | automatic | for a person | works |", "|---|---|---|---|")
        yield from (f"| {area.name} | {area.automatic} | {area.left} | {area.works} |" for area in plan.areas)
    if told.rewritten:
        yield from ("", "## Automatic", "", automatic(plan))
    if told.left:
        yield from ("", "## For a person", "", "| effort | rule | sites | first | what |", "|---|---|---|---|---|")
        for effort in Effort:
            for group in told.left_with(effort):
                for sites in group.kinds():
                    what = cell(sentence(sites[0][1]))
                    path, finding = sites[0]
                    rule = f"{group.rule.code} {group.rule.name}"
                    yield f"| {effort} | {rule} | {len(sites)} | `{path}:{line_of(finding)}` | {what} |"
    if told.hints:
        yield from ("", "## Beside the port", "", hints(plan))
    if plan.blockers:
        yield from ("", "## Blockers among what the code depends on", "", "| what | instead | where |", "|---|---|---|")
        for blocker in plan.blockers:
            yield f"| {cell(blocker.what)} | {cell(blocker.stand_in)} | {cell(places(blocker.sites))} |"
    if told.unread:
        yield from ("", "## Not read", "")
        yield from (f"- `{outcome.path}`: {outcome.status}: {outcome.reason}" for outcome in told.unread)
    yield from ("", "## Next", "")
    yield from (f"{number}. `{step.command}`: {step.why}" for number, step in enumerate(plan.steps, 1))
    if plan.notes:
        yield ""
        yield from (f"Note: {note}" for note in plan.notes)
