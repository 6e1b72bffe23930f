"""Builds of torch and its companions for CUDA, and the indexes that they come from."""

import re
from collections.abc import Iterator

from tpuport import torch_tpu
from tpuport.kinds import packages
from tpuport.kinds.document import Document, Requirement, found
from tpuport.model import Finding, ReplaceText, Rule

LABEL = re.compile(r"\+cu\d+")
_IN_ADDRESS = re.compile(r"[+/]cu\d{2,3}\b")
_COMPANIONS = ("torchvision", "torchaudio")
TOGETHER = 1
"""The chain of all that names a CUDA build in one file: a version and the index that has it change together."""


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every requirement that only a CUDA build meets."""
    movable = may_move(document)
    for one in packages.wanted(document):
        if not _is_for_cuda(one):
            continue
        reason = f"a TPU wants its CPU build, from the index {torch_tpu.CPU_INDEX}"
        if one.name in _COMPANIONS:
            reason += "; beside a CPU build of torch this one fails to import"
        edit = _without_label(document, one) if movable else ()
        message = f"`{document.written(one)}` is a build for CUDA"
        yield found(rule, one.span, message, reason, edit, severity=one.severity, chain=TOGETHER if edit else None)


def _is_for_cuda(one: Requirement) -> bool:
    return bool(LABEL.search(one.specifier) or _IN_ADDRESS.search(one.url.replace("%2B", "+")) or "cuda" in one.build)


def _without_label(document: Document, one: Requirement) -> tuple[ReplaceText, ...]:
    raw = document.text.at(one.span)
    return (ReplaceText(one.span, LABEL.sub("", raw)),)


def may_move(document: Document) -> bool:
    """Whether the file can ask for CPU builds by leaving out labels: it says plainly which versions, and they fit."""
    ours = [one for one in packages.wanted(document) if _is_for_cuda(one)]
    if document.kind != "requirements" or not all(LABEL.search(document.text.at(one.span)) for one in ours):
        return False
    torches = [one for one in packages.wanted(document) if one.name == "torch"]
    return bool(torches) and all(
        packages.admits_any(one.specifier, torch_tpu.TORCH_RELEASES, torch_tpu.TORCH) for one in torches
    )
