"""Python source files."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from tpuport.analysis.libraries import STAND_INS
from tpuport.fixes import Rewritten
from tpuport.kinds import Look
from tpuport.model import Facts, Finding, Project, Rule
from tpuport.source import project as said
from tpuport.source import reserved, text

CANDIDATE = (
    b"cuda",
    b"CUDA",
    b"Cuda",
    b"nccl",
    b"NCCL",
    b"cudnn",
    b"install_requires",
    b"device_map",
    b"attn_impl",
    b"flash_attention",
    b"load_in_",
    b"tpu_cores",
    b"tpu_num_cores",
    b"_tpu_available",
    b"_xla_available",
    b"PJRT_DEVICE",
    b"XLA_USE_BF16",
    b"XLA_DOWNCAST_BF16",
    b"XRT_TPU",
    b"num_gpus",
    b"use_gpu",
)
"""What a rule may match in any file: one without any of these, and without what follows, is not parsed.

Plain strings, each searched for on its own: an alternation of them in one regex is six times slower.
"""

_FRAMEWORKS = (
    *("torch_xla", "accelerate", "transformers", "trl", "peft", "lightning", "pytorch_lightning", "lightning_fabric"),
    *("ray", "vllm", "sglang", "torchrec", "fbgemm"),
)
"""Libraries that run on TPUs too, which rules are about all the same."""

_LIBRARIES = said.imports_of(sorted({*_FRAMEWORKS, *(name.partition(".")[0] for name in STAND_INS)} - {"torch"}))

TORCH_CANDIDATE = (
    b"def forward(",
    b".backward(",
    b"cpp_extension",
    b"autocast",
    b"GradScaler",
    b"DataParallel",
    b"torch.load",
    b"pin_memory",
    b".half(",
    b"nvtx",
    b"torch.compile",
    b"inductor",
    b"max-autotune",
    b"reduce-overhead",
    b"record_stream",
    b"sdpa_kernel",
    b"dist.reduce",
    b"distributed.reduce",
    b"distributed.run",
    b"distributed.launch",
    b"torch.multiprocessing",
    b"init_process_group",
    b"torch.tpu",
    b'"tpu',
    b"'tpu",
    b'"xla',
    b"'xla",
    b".weight = ",
    b"DistributedType.",
    b"DataLoader(",
    b"float64",
    b"double",
    b"complex128",
    b".conj(",
    b".mH",
    b".adjoint(",
    b"nonzero",
    b"argwhere",
    b"masked_select",
    b"torch.unique",
    b"torch.where(",
    b"copysign",
    b"logaddexp",
    b"nansum",
    b"median",
    b"kthvalue",
    b"std_mean",
    b".i0(",
    b"sinc(",
    b"hypot(",
    b"cross(",
    b"torch.mode(",
    b"histogram(",
    b"logspace",
    b"poisson(",
    b"renorm",
    b"det(",
    b"matrix_exp",
    b"linalg.",
    b"cholesky",
    b"RReLU",
    b"rrelu",
    b"quantize_per",
    b"bessel_j0",
    b"zeta(",
    b"distributions",
    b"mish(",
    b"Mish(",
    b"smooth_l1",
    b"SmoothL1",
    b"huber",
    b"Huber",
    b"margin_loss",
    b"MarginLoss",
    b"sparse.softmax",
    b"unpool2d",
    b"Unpool2d",
    b"max_pool2d",
    b"MaxPool2d",
    b"weight_norm",
    b"interpolate(",
    b"log_normal_",
    b"geometric_",
    b"cauchy_",
    b"to_sparse",
    b"to_mkldnn",
    b"LayerNorm(",
    b"Embedding(",
    b"index_select(",
    b"torch.tensor([",
    b"one_hot(",
)
"""As CANDIDATE, for what concerns programs of torch: only beside that word. Those that most files have come first."""


def is_candidate(raw: bytes) -> bool:
    """Whether a file with these bytes has to be parsed."""
    return (
        b"cuda" in raw
        or (b"torch" in raw and any(word in raw for word in TORCH_CANDIDATE))
        or any(word in raw for word in CANDIDATE)
        or any(pattern.search(raw) for pattern in _LIBRARIES)
    )


class _Python:
    """Imports the matcher once there is something to match, and libcst once there is something to rewrite."""

    def look(self, path: Path, raw: bytes, selection: bool = True) -> Look | None:
        """What the bytes tell at a glance."""
        if reserved.is_in(raw):
            decoded = text.decode(raw, path)
            raw = decoded.encode(reserved.readable(decoded.text, reserved.NOW))
        uses_torch = said.uses_torch(raw)
        autocasts = b"autocast" in raw
        if is_candidate(raw):
            facts = Facts(
                cuda_methods=tuple(said.cuda_methods(raw)),
                defers_cuda=said.defers_cuda(raw),
                selects_device=selection and said.selects_device(raw),
                imported_names=tuple(said.imported_names(raw)),
                device_names=said.device_names(raw),
                backend_names=said.backend_names(raw),
                uses_torch=uses_torch,
                autocasts=autocasts,
            )
            return Look(True, facts)
        text.decode(raw, path)
        if not uses_torch:
            return None
        return Look(False, Facts(device_names=said.device_names(raw), uses_torch=True, autocasts=autocasts))

    def findings(self, source: str, project: Project, rules: Sequence[Rule]) -> list[Finding]:
        """What `rules` find."""
        from tpuport import match

        readable = reserved.readable(source, reserved.SAME_LENGTH)
        found = match.findings(readable, project, rules)
        if readable is source:
            return found
        return [replace(one, line_text=one.line_text.replace(reserved.SAME_LENGTH, "async")) for one in found]

    def rewrite(
        self, source: str, project: Project, rules: Sequence[Rule], *, unsafe: bool, line_length: int | None
    ) -> Rewritten:
        """The text with all applied that may be."""
        from tpuport.rewrite import rewrite

        readable = reserved.readable(source, reserved.NOW)
        return rewrite(readable, project, rules, unsafe=unsafe, line_length=line_length)

    def annotate(self, source: str, findings: Iterable[Finding]) -> str:
        """The text with a comment above each statement that needs a person."""
        from tpuport.annotate import annotate

        return annotate(source, findings)

    def moved(self, findings: Sequence[Finding], old: str, new: str) -> tuple[Finding, ...]:
        """`findings` at their places in the new text."""
        from tpuport.source import positions

        return positions.moved(findings, old, new)


HANDLER = _Python()
