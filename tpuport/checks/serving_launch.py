"""Commands that start an engine which serves language models, and what they ask for that a TPU lacks."""

import re
from collections.abc import Iterator
from itertools import pairwise

from tpuport.analysis import serving
from tpuport.kinds import commands
from tpuport.kinds.document import Command, Document, found
from tpuport.model import Finding, Rule, Severity

_VLLM_MODULES = ("vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server")
_SGLANG_MODULES = ("sglang.launch_server", "sglang.bench_offline_throughput", "sglang.bench_one_batch")
_IMAGE = re.compile(r"(?:^|/)vllm-(?:openai|tpu)[:@]")
_ON_TPU = re.compile(r"google\.com/tpu|vllm-(?:torch)?tpu\b")
"""What a file says that has vLLM run on a TPU already."""

_CHIPS = "each step of `--tensor-parallel-size` is one device of the TPU, of which a chip of TPU7x has two"
_ATTENTION = re.compile(r"flash|fa\d|xformers|triton|cutlass|trtllm|cudnn", re.IGNORECASE)
_CONNECTOR = re.compile(r"(?:Nixl|LMCache|Mooncake|P2pNccl|Multi)\w*Connector\w*")
_TPU_CONNECTOR = "vllm/vllm-tpu hands caches over by `TPUConnector` of `tpu_inference.distributed.tpu_connector`"


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every such command, and for each of its options that means CUDA."""
    on_tpu = _ON_TPU.search(document.text.source) is not None
    for command in document.commands:
        if is_vllm(command):
            first = commands.arguments(command)[0]
            if not on_tpu:
                yield found(rule, first.span, reason=f"{serving.VLLM}; {_CHIPS}", severity=Severity.INFO)
            yield from _options(rule, command)
        elif is_sglang(command):
            reason = f"{serving.SGLANG}; its `--tp-size` counts all devices"
            yield found(rule, commands.arguments(command)[0].span, "SGLang's PyTorch server runs no TPU", reason)


def is_vllm(command: Command) -> bool:
    """Whether a command starts vLLM's server."""
    texts = [word.text for word in commands.arguments(command)]
    pairs = list(pairwise(texts))
    if ("vllm", "serve") in pairs or any(("-m", module) in pairs for module in _VLLM_MODULES):
        return True
    return {"docker", "podman"} & set(texts) != set() and any(_IMAGE.search(text) for text in texts)


def is_sglang(command: Command) -> bool:
    """Whether a command starts SGLang's server."""
    texts = [word.text for word in commands.arguments(command)]
    pairs = list(pairwise(texts))
    return texts[:2] == ["sglang", "serve"] or any(("-m", module) in pairs for module in _SGLANG_MODULES)


def _options(rule: Rule, command: Command) -> Iterator[Finding]:
    for names, says in (
        (("--dtype",), _dtype),
        (("--quantization", "-q"), _quantization),
        (("--device",), _device),
        (("--attention-backend",), _attention),
        (("--kv-transfer-config",), _connector),
    ):
        given = commands.option(command.words, *names)
        said = says(given[1].text) if given else None
        if given and said:
            yield found(rule, given[1].span, *said)


def _dtype(value: str) -> tuple[str, str] | None:
    if value not in ("float16", "half", "float32", "float"):
        return None
    return f"vLLM computes in bfloat16 on a TPU, and not in {value}", "`--dtype bfloat16` says so on every device"


def _quantization(value: str) -> tuple[str, str] | None:
    if value in serving.QUANTIZED or value.startswith("$"):
        return None
    return f"vLLM reads no {value} weights on a TPU", f"it reads {', '.join(serving.QUANTIZED)}"


def _device(value: str) -> tuple[str, str] | None:
    return ("a CUDA device is named", "leave the option out: vLLM takes what is there") if "cuda" in value else None


def _attention(value: str) -> tuple[str, str] | None:
    return (f"{value} is attention for CUDA", "leave the option out for a TPU") if _ATTENTION.search(value) else None


def _connector(value: str) -> tuple[str, str] | None:
    named = _CONNECTOR.search(value)
    return (f"{named[0]} hands caches over between GPUs", _TPU_CONNECTOR) if named else None
