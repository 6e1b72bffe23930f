"""Requests for GPUs in manifests of Kubernetes."""

from collections.abc import Iterator

from tpuport.kinds.document import Document, found
from tpuport.model import Finding, Rule

_SELECTOR = "cloud.google.com/gke-accelerator"
_INSTEAD = (
    "on GKE ask for `google.com/tpu` with the number of chips a host has, and select the nodes by "
    "`cloud.google.com/gke-tpu-accelerator` (tpu-v6e-slice) and `cloud.google.com/gke-tpu-topology` (2x2)"
)


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every request, and for the selectors and tolerations that go with it."""
    for entry in document.entries:
        if entry.key.startswith("nvidia.com/") and not entry.is_item and entry.is_scalar:
            yield found(rule, entry.key_span, f"`{entry.key}` asks for NVIDIA GPUs", _INSTEAD)
        elif entry.key == _SELECTOR and entry.is_scalar:
            yield found(rule, entry.key_span, f"`{entry.text}` selects nodes with GPUs", _INSTEAD)
        elif entry.key == "key" and entry.text.startswith("nvidia.com/") and "tolerations" in entry.path:
            reason = "on GKE nodes with TPUs carry the taint google.com/tpu"
            yield found(rule, entry.span, "the toleration is for nodes with GPUs", reason)
