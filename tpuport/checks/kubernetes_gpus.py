"""Requests for GPUs in manifests of Kubernetes, and in the values of charts that make such manifests."""

import re
from collections.abc import Iterator

from tpuport.kinds.document import Document, Entry, found
from tpuport.model import Finding, Rule

_SELECTORS = re.compile(r"cloud\.google\.com/gke-(?:accelerator(?:-count)?|gpu-[\w-]+)|k8s\.amazonaws\.com/accelerator")
_RESOURCE = re.compile(r"(?:(?:requests|limits)\.)?nvidia\.com/[\w.-]+")
_OBJECTS = re.compile(r"(?:\w+\.)?nvidia\.com/\w+")
_PATHS = re.compile(r"/dev/nvidia\S*|/usr/local/nvidia\S*|/home/kubernetes/bin/nvidia\S*|/var/lib/tcpxo?\S*")

_DEVICE = re.compile(r"/dev/nvidia[\w-]*")

_NODES = (
    "the nodes by `cloud.google.com/gke-tpu-accelerator` (tpu-v6e-slice) and `cloud.google.com/gke-tpu-topology` (2x2)"
)
_INSTEAD = f"on GKE ask for `google.com/tpu` with the number of chips a host has, and select {_NODES}"
_TAINT = "on GKE nodes with TPUs carry the taint google.com/tpu"
_PLUGIN = "GKE hands chips over without it"
_LLM_D = "`accelerator.type: google` asks for `google.com/tpu`; `decode.extraConfig.nodeSelector` selects " + _NODES
_STACK = f'the chart asks for a TPU by `requestGPUType: "google.com/tpu"`; select {_NODES}'
_COUNTED = re.compile(r"(?:request|limit)_?GPU", re.IGNORECASE)


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every request, and for the selectors, tolerations and mounts that go with it."""
    for entry in document.entries:
        if entry.is_scalar:
            yield from _kubernetes(rule, entry)
            yield from _charts(rule, entry)
    yield from _left_out(document, rule)


def _kubernetes(rule: Rule, entry: Entry) -> Iterator[Finding]:
    if entry.key.startswith("nvidia.com/") and not entry.is_item:
        yield found(rule, entry.key_span, f"`{entry.key}` asks for NVIDIA GPUs", _INSTEAD)
    elif _SELECTORS.fullmatch(entry.key) and not entry.text.startswith("tpu"):
        yield found(rule, entry.key_span, f"`{entry.text}` selects nodes with GPUs", _INSTEAD)
    elif "tolerations" in entry.path and entry.key == "key" and entry.text.startswith("nvidia.com/"):
        yield found(rule, entry.span, "the toleration is for nodes with GPUs", _TAINT)
    elif entry.key == "apiVersion" and _OBJECTS.fullmatch(entry.text):
        yield found(rule, entry.span, f"`{entry.text}` is an interface of NVIDIA's operators", _PLUGIN)
    elif _SELECTORS.fullmatch(entry.text) or _RESOURCE.fullmatch(entry.text):
        yield found(rule, entry.span, f"`{entry.text}` is about NVIDIA GPUs", _INSTEAD)
    elif entry.key == "runtimeClassName" and entry.text == "nvidia":
        yield found(rule, entry.span, "the runtime class hands over NVIDIA GPUs", _PLUGIN)
    elif (entry.path[-2:] == ("hostPath", "path") and _PATHS.fullmatch(entry.text)) or _DEVICE.fullmatch(entry.text):
        yield found(rule, entry.span, f"`{entry.text}` holds NVIDIA's driver or devices", _PLUGIN)


def _charts(rule: Rule, entry: Entry) -> Iterator[Finding]:
    if entry.path[-2:] == ("accelerator", "type") and entry.text == "nvidia":
        yield found(rule, entry.span, "`accelerator.type` asks for NVIDIA GPUs", _LLM_D)
    elif _COUNTED.fullmatch(entry.key) and "requestGPUType" not in entry.siblings and entry.text not in ("", "0"):
        yield found(rule, entry.key_span, f"`{entry.key}` asks for NVIDIA GPUs", _STACK)


def _left_out(document: Document, rule: Rule) -> Iterator[Finding]:
    """Values of llm-d's chart that say nothing of the accelerator, which is NVIDIA's then."""
    top = {entry.path[0] for entry in document.entries if entry.path}
    artifacts = next((entry for entry in document.entries if entry.path == ("modelArtifacts",)), None)
    if artifacts is not None and "decode" in top and "accelerator" not in top:
        yield found(rule, artifacts.key_span, "where nothing is said, llm-d asks for NVIDIA GPUs", _LLM_D)
