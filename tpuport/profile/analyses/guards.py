"""What a guard of torch.compile that failed stands for: the cause in plain words, the change, and what to do about it.

The wordings are torch's: those of tensors stand in torch/csrc/dynamo/guards.cpp, which gives them no line of source.
"""

import re
from dataclasses import dataclass

from tpuport.profile.analyses.advice import (
    AUTOCAST,
    BATCH_SIZE,
    DIMENSIONS,
    GRADIENTS,
    GROWING_CACHE,
    INPUT_GRADIENT,
    LAYOUT,
    LENGTH,
    NO_ADVICE,
    NUMBER,
    OPTIONAL,
    TRAINING,
    TYPE,
    Advice,
)

SIZE = re.compile(
    r"^tensor '(?P<name>.+)' size mismatch at index (?P<dim>\d+)\. expected (?P<old>\d+), actual (?P<new>\d+)"
)
EQUAL = re.compile(r"^(?P<name>[^=<>!]+?) == (?P<old>.+)$")
_PROPERTY = re.compile(
    r"^tensor '(?P<name>.+)' (?P<what>rank|dtype|stride|requires_grad|dispatch key set) mismatch(?: at index \d+)?"
    r"(?:\. expected (?:requires_grad=)?(?P<old>DispatchKeySet\(.*?\)|[^,]+)(?:, actual (?P<new>.+))?)?$"
)
_NONE = re.compile(r"^(?P<name>\S+) is (?P<negated>not )?None$")
_NUMBER = re.compile(r"^-?\d+(\.\d*)?([eE][-+]?\d+)?$")

_CACHE = re.compile(r"\b(?:cache|past_key_values)\b")
"""What the models of transformers call the keys and values of the tokens before."""


@dataclass(frozen=True, slots=True)
class Cause:
    """`text` names what changed, `change` from what to what; empty where the guard does not say it."""

    text: str
    change: str = ""
    advice: Advice = NO_ADVICE


def condition(guard: str) -> str:
    """Return the guard's own condition, without the source that follows it."""
    return guard.splitlines()[0].partition("  #")[0].strip() if guard else ""


def cause_of(guard: str) -> Cause:
    """Return what `guard` stands for; one that is of no known kind is its own account."""
    first = condition(guard) or "unknown cause"
    if match := SIZE.match(first):
        advice = BATCH_SIZE if match["dim"] == "0" else GROWING_CACHE if _CACHE.search(match["name"]) else LENGTH
        text = f"size of `{match['name']}` in dimension {match['dim']} changed"
        return Cause(text, f"{match['old']} → {match['new']}", advice)
    if match := _PROPERTY.match(first):
        return _property(match["name"], match["what"], match["old"] or "", match["new"] or "")
    if "grad_mode" in first:
        return Cause("gradient mode changed (torch.no_grad, inference_mode)", "", GRADIENTS)
    if "autocast" in first:
        return Cause("autocast changed", "", AUTOCAST)
    if match := _NONE.match(first):
        change = "there → None" if match["negated"] else "None → there"
        return Cause(f"whether `{match['name']}` is None changed", change, OPTIONAL)
    if match := EQUAL.match(first):
        name, old = match["name"].strip(), match["old"].strip()
        if name.endswith(".training"):
            return Cause("training mode changed (Module.train, Module.eval)", "", TRAINING)
        return Cause(f"value of `{name}` changed", f"{old} → other", NUMBER if _NUMBER.match(old) else NO_ADVICE)
    return Cause(first, "", TYPE if "type mismatch" in first or "device mismatch" in first else NO_ADVICE)


def _property(name: str, what: str, old: str, new: str) -> Cause:
    change = f"{old} → {new}" if old and new else ""
    if what == "requires_grad":
        # Torch names the value that it expected: the tensor's is the other one.
        text = f"whether `{name}` needs a gradient changed"
        return Cause(text, {"1": "yes → no", "0": "no → yes"}.get(old, ""), INPUT_GRADIENT)
    if what == "dtype":
        return Cause(f"dtype of `{name}` changed", change, TYPE)
    if what == "rank":
        return Cause(f"number of dimensions of `{name}` changed", change, DIMENSIONS)
    if what == "stride":
        return Cause(f"strides of `{name}` changed", change, LAYOUT)
    # The sets of keys differ by the device, or by whether autograd is to see the tensor.
    devices = [re.findall(r"\b(CPU|CUDA|PrivateUse1|Meta)\b", keys) for keys in (old, new)]
    if devices[0] != devices[1]:
        return Cause(f"device of `{name}` changed", "", TYPE)
    return Cause(f"whether autograd sees `{name}` changed (torch.inference_mode)", "", GRADIENTS)
