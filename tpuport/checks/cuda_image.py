"""Images of containers that are made for NVIDIA's GPUs."""

import re
from collections.abc import Iterator

from tpuport import torch_tpu
from tpuport.kinds.document import Document, found
from tpuport.model import Finding, Rule

_CUDA = re.compile(r"(?:^|/)nvidia/|^nvcr\.io/|(?:^|[/:_.-])cuda|(?:^|[/:_.-])cu1\d\d(?![0-9a-z])|[/:_-]gpu(?![a-z])")
_REFERENCE = re.compile(r"[\w.${}/-]+(?::[\w.${}-]+)?(?:@sha256:[0-9a-f]+)?")
_DEFAULT = re.compile(r"\$\{\w+:?-([^{}]*)\}")
"""A variable, and what stands for it where it is not set."""

BASE = "python:3.12-slim"


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every such image."""
    for image in document.images:
        reference = _DEFAULT.sub(r"\1", image.reference)
        if _REFERENCE.fullmatch(reference) and _CUDA.search(reference):
            how = f"`--build-arg {image.argument}={BASE}`" if image.argument else f"`{BASE}`"
            reason = f"build from {how}, where a TPU needs no more than `{torch_tpu.INSTALL}`"
            yield found(rule, image.span, f"the image `{reference}` is for NVIDIA GPUs", reason)
