"""Packages that exist for CUDA alone, with what stands in for each on a TPU."""

import re
from collections.abc import Iterator

from tpuport.analysis.libraries import STAND_INS
from tpuport.kinds import packages
from tpuport.kinds.document import Document, found
from tpuport.model import Finding, Rule

_COMES_ALONG = "leave it out, as CUDA builds of torch bring what they need of it"
_PACKAGES = (
    (r"nvidia-dali.*", "nvidia.dali"),
    (r"nvidia-ml-py.*", "pynvml"),
    (r"nvidia-tensorrt|tensorrt-.*", "tensorrt"),
    (r"cupy-cuda.*", "cupy"),
    (r"flash-attention", "flash_attn"),
    (r"flashinfer-python", "flashinfer"),
    (r"nvidia-apex", "apex"),
    (r"autoawq.*", "awq"),
    (r"unsloth-zoo", "unsloth"),
    (r"spconv-cu\d+", "spconv"),
    (r"bitsandbytes-.*", "bitsandbytes"),
    (r"transformer-engine-.*", "transformer_engine"),
    (r"triton-nightly|pytorch-triton", "triton"),
    (r"megatron-core|megatron-lm", "megatron"),
)
"""Packages that are not called as the library that they hold, with that library."""

_OTHERS = (
    (
        r"nvidia-(cublas|cuda-.*|cudnn|cufft|cufile|curand|cusolver|cusparse|cusparselt|nccl|nvjitlink|nvtx|nvshmem)"
        r"(-cu\d+)?",
        _COMES_ALONG,
    ),
    (r"pytorch-cuda|cudatoolkit(-dev)?|cuda-toolkit|cuda-nvcc|cuda-runtime|cuda-cudart|cudnn|nccl", "leave it out"),
    (r"onnxruntime-gpu", "use onnxruntime"),
    (r"faiss-gpu(-.*)?", "use faiss-cpu"),
    (r"tensorflow-gpu", "use tensorflow"),
    (r"cudf(-cu\d+)?|cuml(-cu\d+)?|cugraph(-cu\d+)?", "use pandas, scikit-learn or networkx on the host"),
    (r"dgl-cu\d+", "it has no counterpart for a TPU"),
)


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every such package; the parts of CUDA that pip freezes are told of once."""
    wanted = list(packages.wanted(document))
    parts = [one for one in wanted if _stand_in(one.name) == _COMES_ALONG]
    for one in wanted:
        stand_in = _stand_in(one.name)
        if not stand_in or one in parts[1:]:
            continue
        named = f"{one.name} is for CUDA only"
        if one in parts and parts[1:]:
            named = (
                f"{one.name} is for CUDA only, as are {len(parts) - 1} more packages of CUDA's libraries in this file"
            )
        yield found(rule, one.span, named, stand_in, severity=one.severity)


def _stand_in(name: str) -> str:
    other = (library for pattern, library in _PACKAGES if re.fullmatch(pattern, name))
    library = next(other, name.replace("-", "_"))
    if library in STAND_INS:
        return f"on a TPU use {STAND_INS[library]}"
    return next((said for pattern, said in _OTHERS if re.fullmatch(pattern, name)), "")
