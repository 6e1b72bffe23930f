"""Settings that ask for GPUs, or say how many."""

import re
from collections.abc import Iterator

from tpuport.kinds.document import Document, found
from tpuport.model import Finding, Rule

_COUNT = re.compile(r"(n|num|n_|num_|number_of_)?gpus?([_-]ids?|[_-]per[_-]node|_?count|_num)?|gpu_list", re.IGNORECASE)
_SWITCH = re.compile(r"(use_|enable_|with_)?(cuda|gpu)", re.IGNORECASE)
_LIGHTNING = (
    "Lightning 2.6.6 finds no TPU of torch_tpu by a name: let it be `auto`, and give the trainer its strategy in code, "
    "as `tpuport rules TP460` shows"
)
_TRAINER = {"devices", "max_epochs", "max_steps", "strategy", "num_nodes", "precision", "_target_"}
"""Keys beside an accelerator that say that it is Lightning's."""

_PROCESSES = "on a TPU one process drives one chip, and the launcher says how many there are"
_CODE = "the code that reads it decides: let it ask `torch.accelerator.is_available()`"

_SOME = re.compile(r"[1-9]\d*|-1|all|auto|\d+(\s*,\s*\d+)+")


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every such setting that is on."""
    for entry in document.entries:
        if not entry.is_scalar or entry.is_item or "services" in entry.path:
            continue
        text = entry.text.lower()
        if entry.key == "accelerator" and text in ("gpu", "cuda"):
            reason = _LIGHTNING if _TRAINER & entry.siblings else ""
            yield found(rule, entry.span, f"`accelerator` is set to {text}", reason)
        elif entry.key == "distributed_type" and text == "multi_gpu":
            reason = "Accelerate makes no process group on a TPU: `NO`, and one process, is what runs there"
            yield found(rule, entry.span, "`distributed_type` is set to MULTI_GPU", reason)
        elif _COUNT.fullmatch(entry.key) and _SOME.fullmatch(text):
            yield found(rule, entry.span, f"`{entry.key}` asks for GPUs", _PROCESSES)
        elif _SWITCH.fullmatch(entry.key) and text == "true":
            yield found(rule, entry.span, f"`{entry.key}` asks for GPUs", _CODE)
