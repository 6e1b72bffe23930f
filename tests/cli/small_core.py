"""A small core in the place of the real one, so that these tests are about the command line and not about rules.

`.cuda()` can be fixed, `.half()` only with --unsafe, `torch.cuda.nope` not at all, and `cudnn` works as it is.
"""

import ast
import re
import subprocess
import types
from collections.abc import Callable, Sequence
from pathlib import Path

from tpuport.model import Example, Finding, Project, Replace, Rule, Safety, Severity, Span
from tpuport.source.torch_floor import HELD, older

RULES = tuple(
    Rule(
        code, name, "area", severity, safety, f"{name} message", f"{name} why", "https://example.org", examples=examples
    )
    for code, name, severity, safety, examples in (
        ("TPU101", "cuda-call", Severity.WARNING, Safety.SAFE, (Example("x.cuda()\n", "x.to(device)\n", "a note"),)),
        (
            "TPU102",
            "half-call",
            Severity.WARNING,
            Safety.UNSAFE,
            (Example("x.half()\n", "x.bfloat16()\n", unsafe=True),),
        ),
        ("TPU201", "no-such-thing", Severity.ERROR, Safety.MANUAL, (Example("torch.cuda.nope\n", None),)),
        ("TPU301", "cudnn-flag", Severity.INFO, Safety.MANUAL, ()),
    )
)
SITES = {
    "TPU101": (r"\.cuda\(\)", ".to(device)"),
    "TPU102": (r"\.half\(\)", ".bfloat16()"),
    "TPU201": (r"torch\.cuda\.nope", None),
    "TPU301": (r"cudnn", None),
}


def findings(source: str, project: Project, rules: Sequence[Rule]) -> list[Finding]:
    ast.parse(source)
    found = []
    for rule in rules:
        pattern, new = SITES[rule.code]
        for number, line in enumerate(source.split("\n"), 1):
            for site in re.finditer(pattern, line):
                span = Span(number, site.start(), number, site.end())
                held = older(project.min_torch, "2.6")
                edits = (Replace(span, new),) if new and not held else ()
                reason = f"{HELD} 2.6" if new and held else "" if new else "nothing stands in for it"
                found.append(
                    Finding(rule.code, rule.name, rule.message, span, rule.severity, rule.safety, edits, reason)
                )
    return sorted(found, key=lambda finding: finding.span)


def rewrite(
    source: str, project: Project, rules: Sequence[Rule], *, unsafe: bool = False, line_length: int | None = None
) -> object:
    assert line_length is None or line_length > 0
    before = findings(source, project, rules)
    applies = [finding for finding in before if finding.edits and (unsafe or finding.safety is Safety.SAFE)]
    text = source
    for finding in applies:
        pattern, new = SITES[finding.code]
        assert new
        text = re.sub(pattern, new, text)
    if text != source:
        text = "device = 'x'\n" + text
    remaining = tuple(finding for finding in before if finding not in applies)
    return types.SimpleNamespace(text=text, fixed=tuple(applies), remaining=remaining)


class Done:
    """How a command ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err


Command = Callable[..., Done]


def git(directory: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main"]
    identity += ["-c", "core.autocrlf=false"]
    done = subprocess.run(["git", *identity, *arguments], cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def commit(directory: Path) -> None:
    git(directory, "add", "--all", "--force")
    git(directory, "commit", "--message", "x")
