"""Environment variables of CUDA and its libraries."""

import re
from collections.abc import Iterator

from tpuport.kinds.document import Document, found
from tpuport.model import Finding, Rule

_NAMES = re.compile(
    r"CUDA_(VISIBLE_DEVICES|DEVICE_ORDER|LAUNCH_BLOCKING|DEVICE_MAX_CONNECTIONS|HOME|CACHE_PATH)"
    r"|(TORCH_)?NCCL_\w+|PYTORCH_CUDA_ALLOC_CONF|TORCH_CUDA_ARCH_LIST|NVIDIA_\w+|CUBLAS_WORKSPACE_CONFIG|CUDNN_\w+"
)
_INSTEAD = {
    "CUDA_VISIBLE_DEVICES": "on a TPU each process has its chip from the environment that "
    "`python -m torch.tpu.distributed` prints",
    "CUDA_LAUNCH_BLOCKING": "its counterpart is TORCH_TPU_LAUNCH_BLOCKING=1",
}


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every such variable that is set to something."""
    for variable in document.variables:
        hides = variable.name == "CUDA_VISIBLE_DEVICES" and variable.value.strip("\"' ") in ("", "-1")
        if _NAMES.fullmatch(variable.name) and not hides:
            message = f"`{variable.name}` is for CUDA, and a TPU passes over it"
            yield found(rule, variable.span, message, _INSTEAD.get(variable.name, ""))
