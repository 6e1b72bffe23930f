"""Projects that ask for torch and not for torch_tpu."""

import re
from collections.abc import Iterator

from tpuport import torch_tpu
from tpuport.kinds import packages
from tpuport.kinds.document import Document, found
from tpuport.model import Finding, ReplaceText, Rule, Span


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """One finding for a file, at its first requirement on torch."""
    if any(one.name == "torch-tpu" for one in document.requirements):
        return
    torch = next((one for one in packages.wanted(document) if one.name in ("torch", "pytorch")), None)
    if torch is None or torch.optional:
        return
    reason = f"on a TPU host, beside it: {torch_tpu.INSTALL}"
    edits = _extra(document) if document.kind == "toml" and _may_meet(document) else ()
    yield found(rule, torch.span, "", reason, edits)


def _may_meet(document: Document) -> bool:
    """Whether torch_tpu can be installed beside what is asked for; if not, an extra would leave no set of versions."""
    releases = {"torch": torch_tpu.TORCH_RELEASES, "numpy": torch_tpu.NUMPY_RELEASES}
    bounds = {"torch": torch_tpu.TORCH}
    return all(
        packages.admits_any(one.specifier, releases[one.name], bounds.get(one.name, ""))
        for one in packages.wanted(document)
        if one.name in releases
    ) and all(packages.admits_any(one.text, torch_tpu.PYTHON_RELEASES) for one in document.interpreters)


def _extra(document: Document) -> tuple[ReplaceText, ...]:
    """An extra `tpu` in a pyproject.toml whose extras stand in a table of their own, or that has none."""
    project = {
        entry.key: entry for entry in document.entries if entry.path[:1] == ("project",) and len(entry.path) == 2
    }
    dynamic = {entry.text for entry in document.entries if entry.path == ("project", "dynamic")}
    if "dependencies" not in project or "optional-dependencies" in dynamic:
        return ()
    line = f"tpu = [\"{torch_tpu.REQUIREMENT}; python_version >= '{torch_tpu.PYTHON_RELEASES[0]}'\"]\n"
    source = document.text.source
    header = re.search(r"^\[project\.optional-dependencies\][ \t]*(#[^\n]*)?\n", source, re.MULTILINE)
    if header:
        at = document.text.span(header.end(), header.end())
        return (ReplaceText(at, line),)
    if "optional-dependencies" in project:
        return ()
    end = _end_of_project(document)
    return (ReplaceText(end, f"\n[project.optional-dependencies]\n{line}"),)


def _end_of_project(document: Document) -> Span:
    """The end of the last line of what stands under `[project]`, where another table may begin."""
    own = [entry for entry in document.entries if entry.path[:1] == ("project",)]
    source = document.text.source
    last = max(document.text.offset(entry.span.end_line, entry.span.end_column) for entry in own)
    header = re.compile(r"^\[", re.MULTILINE).search(source, last)
    stop = header.start() if header else len(source)
    end = len(source[:stop].rstrip()) + 1
    return document.text.span(min(end, len(source)), min(end, len(source)))
