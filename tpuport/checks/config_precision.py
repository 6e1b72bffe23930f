"""Settings that choose float16."""

import re
from collections.abc import Iterator

from tpuport.checks.distributed_launcher import launches_accelerate
from tpuport.kinds import commands
from tpuport.kinds.document import Document, Entry, found
from tpuport.model import Finding, ReplaceText, Rule, Severity

_TAILS = "run|training|mode|enabled|full_eval|precision"
_SWITCH = re.compile(rf"(.*[_-])?(fp16|float16|half)([_-]({_TAILS}))?", re.IGNORECASE)
_KEY = re.compile(r"(.*[_-])?(precision|dtype|data_type)", re.IGNORECASE)
_FLOAT16 = ("fp16", "float16", "half", "16-mixed", "16-true", "torch.float16")
_TRAINER = {"accelerator", "devices", "gpus", "max_epochs", "max_steps", "strategy", "num_nodes", "gradient_clip_val"}
"""Keys of a trainer of Lightning, beside which a precision of 16 is float16."""
_ACCELERATE = {"compute_environment", "distributed_type"}
"""Keys of what `accelerate config` writes."""

_BFLOAT16 = "choose bfloat16, which TPUs compute in and which needs no scaling of the loss"
_LIGHTNING = "choose `bf16-true`, or give the trainer a plugin for the device, as `tpuport rules TP461` shows"

_OPTIONS = ("--mixed_precision", "--mixed-precision")


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every such setting; what only tells how weights were saved is information."""
    for entry in document.entries:
        if entry.is_scalar and not entry.is_item and _is_float16(entry):
            severity = (
                Severity.INFO if entry.key in ("torch_dtype", "dtype") and "architectures" in entry.siblings else None
            )
            named = ".".join(entry.path[-2:]) if entry.key == "enabled" else entry.key
            raw = document.text.at(entry.span)
            new = _bfloat16(entry)
            edits = (ReplaceText(entry.span, raw.replace(entry.text, new)),) if new else ()
            reason = _LIGHTNING if entry.text.startswith("16-") or entry.text == "16" else _BFLOAT16
            yield found(rule, entry.span, f"`{named}` chooses float16", reason, edits, severity=severity)
    for command in document.commands:
        given = commands.option(command.words, *_OPTIONS) if launches_accelerate(command) else None
        if given and given[1].text == "fp16":
            begin, _, end = document.text.at(given[1].span).rpartition("fp16")
            edit = ReplaceText(given[1].span, f"{begin}bf16{end}")
            message = f"`{given[0].text.partition('=')[0]}` chooses float16"
            yield found(rule, given[1].span, message, _BFLOAT16, (edit,))


def _bfloat16(entry: Entry) -> str:
    """What to write for bfloat16, where the value or the keys beside it tell who reads it: Lightning, or Accelerate."""
    if entry.key == "precision" and entry.text in ("16-mixed", "16-true"):
        return f"bf{entry.text}"
    if entry.key == "mixed_precision" and entry.text == "fp16" and entry.siblings >= _ACCELERATE:
        return "bf16"
    return ""


def _is_float16(entry: Entry) -> bool:
    text = entry.text.lower()
    if text == "true":
        return bool(_SWITCH.fullmatch(entry.key)) or entry.path[-2:] == ("fp16", "enabled")
    if not _KEY.fullmatch(entry.key):
        return False
    return text in _FLOAT16 or (text == "16" and entry.key == "precision" and bool(_TRAINER & entry.siblings))
