"""Settings that choose kernels or libraries which exist for CUDA alone."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from tpuport.kinds.document import Document, Entry, found
from tpuport.model import Finding, ReplaceText, Rule

_SDPA = "`sdpa`, torch's own attention, has a kernel for TPUs"
_BITS = "load the weights in bfloat16: adapters of PEFT train on those as they do on quantized ones"
_DEEPSPEED = "DeepSpeed knows no TPU: `fully_shard` of torch.distributed shards there"
_APART = "Accelerate makes no process group on a TPU: `NO`, and one process, is what runs there"


class _Kind(NamedTuple):
    key: str
    value: str
    message: str
    reason: str
    new: str = ""
    """What may be written in the place of the whole value."""


_ON = r"true|1|yes|on"
_KINDS = (
    _Kind(
        r"_?attn_impl(ementation)?|_?attention_impl(ementation)?",
        r"flash_attention(_[234])?",
        "`{key}` chooses FlashAttention",
        _SDPA,
        "sdpa",
    ),
    _Kind(
        r"_?attn_impl(ementation)?|_?attention_impl(ementation)?|attn_?backend|attention_backend",
        r"flash|flash[-_]?attn.*|xformers|flex_attention|sage.*|.*/.*flash-?attn.*",
        "`{key}` chooses {value}, which has no kernel for a TPU",
        _SDPA,
    ),
    _Kind(
        r"(use_|enable_)?flash_?(attn|attention)(_?[23])?|flash_attn_\w+|use_flash_attention_2",
        _ON,
        "`{key}` switches FlashAttention on",
        _SDPA,
    ),
    _Kind(
        r"(use_|enable_)?xformers(_attention|_memory_efficient_attention)?",
        _ON,
        "`{key}` switches xformers on",
        _SDPA,
    ),
    _Kind(r"load_in_[48]bit", _ON, "`{key}` asks for weights that CUDA kernels unpack", _BITS),
    _Kind(
        r"optim(izer)?(_name)?",
        r"\w*(8bit|bnb|apex)\w*|paged_\w+",
        "`{key}` is an optimizer of bitsandbytes or apex",
        "use `adamw_torch` of transformers, or `torch.optim`",
    ),
    _Kind(
        r"(use_)?liger_?\w*",
        _ON,
        "`{key}` chooses kernels of Liger, which are Triton's",
        "leave it off: torch.compile fuses the same operations on a TPU",
    ),
    _Kind(r"tf32", _ON, "`{key}` is for CUDA, and transformers raises without it", "leave it out on a TPU"),
    _Kind(
        r"deepspeed(_config(_file)?)?", r".+\.(json|ya?ml)", "`{key}` names a configuration of DeepSpeed", _DEEPSPEED
    ),
    _Kind(r"distributed_type", r"deepspeed|fsdp|megatron_lm", "`{key}` is set to {value}", _APART),
)


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every such setting that is on, and one for a file that configures DeepSpeed."""
    for entry in document.entries:
        kind = _kind(entry)
        if kind is not None:
            raw = document.text.at(entry.span)
            edits = (ReplaceText(entry.span, raw.replace(entry.text, kind.new)),) if kind.new else ()
            message = kind.message.format(key=entry.key, value=entry.text)
            yield found(rule, entry.span, message, kind.reason, edits)
        elif entry.key == "zero_optimization" and not entry.is_item and not entry.is_scalar:
            yield found(rule, entry.key_span, "the file configures DeepSpeed", _DEEPSPEED)


def _kind(entry: Entry) -> _Kind | None:
    if not entry.is_scalar or entry.is_item:
        return None
    key, value = entry.key.lower(), entry.text.lower()
    return next((kind for kind in _KINDS if re.fullmatch(kind.key, key) and re.fullmatch(kind.value, value)), None)
