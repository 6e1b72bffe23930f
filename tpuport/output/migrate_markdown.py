"""A migration's account as Markdown, for a pull request: what changed, what is left by effort, what to do next."""

from collections.abc import Iterator, Sequence

from tpuport.account import Account, Group, account, count
from tpuport.engine import Report
from tpuport.model import Effort, Rule, Status
from tpuport.output.findings import line_of, sentence
from tpuport.output.markdown import cell
from tpuport.output.style import count as counted

SITES = 20
"""Sites listed for a rule before the rest is only counted."""


def render(report: Report, rules: Sequence[Rule]) -> str:
    """The whole account; `rules` say what each code means and costs."""
    return "\n".join(_lines(report, account(report, rules))) + "\n"


def _lines(report: Report, told: Account) -> Iterator[str]:
    changed = len(report.of(Status.CHANGED))
    verb = "changed" if report.written else "would change"
    yield "# Port to device-agnostic PyTorch"
    yield ""
    files = counted(len(report.outcomes), "file")
    yield f"{changed} of {files} {verb}: {count(told.rewritten)} sites rewritten, {count(told.left)} left."
    if told.rewritten:
        yield from _rewritten(told.rewritten)
    for effort in Effort:
        groups = told.left_with(effort)
        if groups:
            yield from ("", f"## Left for you: {effort} effort")
            for group in groups:
                yield from _left(group)
    if told.works:
        yield from ("", "## Works as it stands", "")
        works = counted(count(told.works), "site")
        need = "needs" if count(told.works) == 1 else "need"
        yield f"{works} of CUDA code {need} no change: `tpuport lint --severity info` names them."
    if told.unread:
        yield from ("", "## Not migrated", "")
        yield from (f"- `{outcome.path}`: {outcome.status}: {outcome.reason}" for outcome in told.unread)
    yield from _next(bool(told.left))


def _rewritten(groups: Sequence[Group]) -> Iterator[str]:
    yield from ("", "## Rewritten", "", "| rule | sites | files | why it is safe |", "|---|---|---|---|")
    for group in groups:
        rule = f"{group.rule.code} {group.rule.name}"
        yield f"| {rule} | {len(group.sites)} | {group.files} | {cell(_why(group))} |"


def _left(group: Group) -> Iterator[str]:
    sites = group.sites
    yield from ("", f"### {group.rule.code} {group.rule.name} ({len(sites)})", "", _why(group), "")
    yield from (f"- `{path}:{line_of(finding)}`: {cell(sentence(finding))}" for path, finding in sites[:SITES])
    if len(sites) > SITES:
        yield f"- and {len(sites) - SITES} more"


def _why(group: Group) -> str:
    return " ".join(group.rule.why.split())


def _next(left: bool) -> Iterator[str]:
    yield from ("", "## Next", "")
    if left:
        yield "1. Work through what is left, lowest effort first; `tpuport rules CODE` explains each rule."
    yield f"{2 if left else 1}. Run the program on the CPU as before, and compare its numbers."
    yield "   Where torch_tpu is installed and no TPU is attached, set `TORCH_DEVICE_BACKEND_AUTOLOAD=0` for it:"
    yield "   importing torch may look for a TPU for minutes."
    yield f"{3 if left else 2}. `tpuport profile train.py` runs it on an emulated TPU, with no TPU at hand."
    yield f"{4 if left else 3}. `tpuport lint` in CI keeps the code portable."
