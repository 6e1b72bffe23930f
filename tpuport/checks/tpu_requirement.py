"""Projects that ask for torch and not for torch_tpu."""

import re
from collections.abc import Iterator

from tpuport import torch_tpu
from tpuport.kinds import packages
from tpuport.kinds.document import Document, found
from tpuport.model import Finding, ReplaceText, Rule, Span

_EXTRAS = ("project", "optional-dependencies")


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
    paths = {entry.path for entry in document.entries}
    dynamic = {entry.text for entry in document.entries if entry.path == ("project", "dynamic")}
    if ("project", "dependencies") not in paths or "optional-dependencies" in dynamic:
        return ()
    if (*_EXTRAS, "tpu") in paths:
        return ()
    line = f"tpu = [\"{torch_tpu.REQUIREMENT}; python_version >= '{torch_tpu.PYTHON_RELEASES[0]}'\"]\n"
    source = document.text.source
    header = re.search(r"^\[project\.optional-dependencies\][ \t]*(#[^\n]*)?\n", source, re.MULTILINE)
    if header:
        at = document.text.span(header.end(), header.end())
        return (ReplaceText(at, line),)
    if _EXTRAS in paths:
        return ()
    end = _end_of_project(document)
    return (ReplaceText(end, f"\n[project.optional-dependencies]\n{line}"),)


def _end_of_project(document: Document) -> Span:
    """The end of the last line of what stands under `[project]`, before what is said of the table after it."""
    own = [entry for entry in document.entries if entry.path[:1] == ("project",)]
    source = document.text.source
    last = max(document.text.offset(entry.span.end_line, entry.span.end_column) for entry in own)
    header = re.compile(r"^\[", re.MULTILINE).search(source, last)
    lines = source[: header.start() if header else len(source)].split("\n")
    while not lines[-1].strip() or lines[-1].startswith("#"):
        lines.pop()
    end = min(len("\n".join(lines)) + 1, len(source))
    return document.text.span(end, end)
