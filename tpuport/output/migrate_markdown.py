"""A migration's account as Markdown, for a pull request: what changed, what is left by effort, what to do next."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tpuport.engine import Report
from tpuport.model import Effort, Finding, Rule, Severity, Status
from tpuport.output.findings import sentence
from tpuport.output.style import count

SITES = 20
"""Sites listed for a rule before the rest is only counted."""

Site = tuple[Path, Finding]


def render(report: Report, rules: Sequence[Rule]) -> str:
    """The whole account; `rules` say what each code means and costs."""
    return "\n".join(_lines(report, {rule.code: rule for rule in rules})) + "\n"


def _lines(report: Report, rules: dict[str, Rule]) -> Iterator[str]:
    left = [(path, finding) for path, finding in report.findings if finding.severity is not Severity.INFO]
    fixed = list(report.fixed)
    changed = len(report.of(Status.CHANGED))
    verb = "changed" if report.written else "would change"
    yield "# Port to device-agnostic PyTorch"
    yield ""
    yield f"{changed} of {count(len(report.outcomes), 'file')} {verb}: {len(fixed)} sites rewritten, {len(left)} left."
    if fixed:
        yield from _rewritten(fixed, rules)
    for effort in Effort:
        sites = [site for site in left if rules[site[1].code].effort is effort]
        if sites:
            yield from _left(effort, sites, rules)
    works = len(report.findings) - len(left)
    if works:
        yield from ("", "## Works as it stands", "")
        yield f"{count(works, 'site')} of CUDA code need no change: `tpuport lint --severity info` names them."
    unread = report.of(Status.SKIPPED, Status.FAILED)
    if unread:
        yield from ("", "## Not migrated", "")
        yield from (f"- `{outcome.path}`: {outcome.status}: {outcome.reason}" for outcome in unread)
    yield from _next(bool(left))


def _rewritten(fixed: Sequence[Site], rules: dict[str, Rule]) -> Iterator[str]:
    yield from ("", "## Rewritten", "", "| rule | sites | files | why it is safe |", "|---|---|---|---|")
    for code, number in sorted(Counter(finding.code for _, finding in fixed).items()):
        files = {path for path, finding in fixed if finding.code == code}
        why = " ".join(rules[code].why.split())
        yield f"| {code} {rules[code].name} | {number} | {len(files)} | {_cell(why)} |"


def _left(effort: Effort, sites: Sequence[Site], rules: dict[str, Rule]) -> Iterator[str]:
    yield from ("", f"## Left for you: {effort} effort")
    for code in sorted({finding.code for _, finding in sites}):
        own = [site for site in sites if site[1].code == code]
        yield from ("", f"### {code} {rules[code].name} ({len(own)})", "", " ".join(rules[code].why.split()), "")
        yield from (f"- `{path}:{finding.span.line}`: {_cell(sentence(finding))}" for path, finding in own[:SITES])
        if len(own) > SITES:
            yield f"- and {len(own) - SITES} more"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _next(left: bool) -> Iterator[str]:
    yield from ("", "## Next", "")
    if left:
        yield "1. Work through what is left, lowest effort first; `tpuport rules CODE` explains each rule."
    yield f"{2 if left else 1}. Run the program on the CPU as before, and compare its numbers."
    yield "   Where torch_tpu is installed and no TPU is attached, set `TORCH_DEVICE_BACKEND_AUTOLOAD=0` for it:"
    yield "   importing torch may look for a TPU for minutes."
    yield f"{3 if left else 2}. `tpuport profile train.py` runs it on an emulated TPU, with no TPU at hand."
    yield f"{4 if left else 3}. `tpuport lint` in CI keeps the code portable."
