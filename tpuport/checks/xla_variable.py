"""Environment variables of PyTorch/XLA in scripts, images and manifests."""

import re
from collections.abc import Iterator

from tpuport.checks import xla_environment
from tpuport.kinds.document import Document, found
from tpuport.model import Finding, Rule, Severity

_BFLOAT16 = re.compile(r"XLA_(?:USE|DOWNCAST)_(?:BF16|FP16|F16)")


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every such variable that is set; information, unless numbers or processes depend on it."""
    for variable in document.variables:
        name = variable.name
        if not xla_environment.VARIABLE.match(name) and not _BFLOAT16.fullmatch(name):
            continue
        reason = xla_environment.REASONS.get(name, "")
        severity = None if reason or _BFLOAT16.fullmatch(name) else Severity.INFO
        message = f"`{name}` is for PyTorch/XLA, and torch_tpu passes over it"
        yield found(rule, variable.span, message, reason, severity=severity)
