"""Images of containers that are made for NVIDIA's GPUs, and what a TPU begins with instead."""

import re
from collections.abc import Iterator

from tpuport import torch_tpu
from tpuport.analysis import serving
from tpuport.kinds.document import Document, Image, found
from tpuport.model import Finding, Rule

_CUDA = re.compile(
    r"(?:^|/)nvidia/|^nvcr\.io/|(?:^|[/:_.-])(?:cuda|nccl)|(?:^|[/:_.-])cu1\d\d(?![0-9a-z])|[/:_-]gpu(?:direct)?(?![a-z])"
    r"|(?:^|/)(?:vllm-openai|sglang|pytorch/pytorch)(?![a-z-])|/llm-d(?:-cuda)?(?![a-z-])"
)
_OTHER = re.compile(r"[/:_.-](?:cpu|rocm|xpu|hpu|npu|tpu|neuron|gaudi|jax)(?![a-z])")
"""What tells that an image is made for something else."""

_REFERENCE = re.compile(r"[\w.${}/-]+(?::[\w.${}-]+)?(?:@sha256:[0-9a-f]+)?")
_DEFAULT = re.compile(r"\$\{\w+:?-([^{}]*)\}")
"""A variable, and what stands for it where it is not set."""

BASE = "python:3.12-slim"

_NVIDIA_ENGINE = f"it serves through NVIDIA's own engines; {serving.VLLM}"
_INSTEAD = (
    (r"llm-d|vllm", serving.VLLM),
    (r"sglang", serving.SGLANG),
    (r"dcgm|device-plugin|nccl|direct|tcpx|rxdm|gpu-operator|driver", "it looks after NVIDIA's GPUs, or their network"),
    (r"triton|tensorrt|trtllm|dynamo|/nim/", _NVIDIA_ENGINE),
    (r"nemo|megatron", "it holds NeMo and Megatron, which are built on CUDA's libraries and run no TPU"),
    (r"tensorflow|jax|maxtext|paddle|mxnet", "it is for another framework than PyTorch"),
    (r"(?:^|/)ray(?:-ml)?:", "take Ray's image for Python 3.11 or newer without that ending, and add torch_tpu to it"),
)
"""What an image is for, with what to do on a TPU."""


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every such image."""
    for image in document.images:
        reference = _DEFAULT.sub(r"\1", image.reference)
        if _REFERENCE.fullmatch(reference) and _CUDA.search(reference) and not _OTHER.search(reference):
            yield found(rule, image.span, f"the image `{reference}` is for NVIDIA GPUs", _instead(image, reference))


def _instead(image: Image, reference: str) -> str:
    said = next((said for pattern, said in _INSTEAD if re.search(pattern, reference)), "")
    how = f"`--build-arg {image.argument}={BASE}`" if image.argument else f"`{BASE}`"
    return said or f"build from {how}, where a TPU needs no more than `{torch_tpu.INSTALL}`"
