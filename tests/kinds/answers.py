"""What one text is told by all rules, in a project that uses torch."""

from pathlib import Path

from tpuport import catalog, kinds
from tpuport.model import Facts, Finding, Project, Severity

RULES = catalog.load().rules
PROJECT = Project("2.11", facts=Facts(uses_torch=True))


def findings(name: str, text: str) -> list[Finding]:
    return kinds.handler_of(Path(name)).findings(text, PROJECT, RULES)


def found(name: str, text: str) -> list[str]:
    """Each finding above information as `CODE:line`."""
    return [f"{f.code}:{f.span.line}" for f in findings(name, text) if f.severity is not Severity.INFO]
