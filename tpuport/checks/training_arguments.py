"""Arguments of transformers' Trainer that are for CUDA."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import is_constant
from tpuport.analysis.frameworks import names_training_arguments
from tpuport.checks.choices import arms, kept_on_cuda
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule

APART = "Accelerate makes no process group on a TPU: shard the model by torch.distributed instead"
REPORTED = {
    "no_cuda": "`use_cpu` says it for every device; this one is gone since transformers 5",
    "deepspeed": "DeepSpeed knows no TPU: `fully_shard` of torch.distributed shards there",
    "fsdp": APART,
}
"""Arguments with no counterpart that can be written here, with what to do."""


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every argument that raises on a TPU, or does nothing there."""
    module = context.module
    for call in module.of_type(ast.Call):
        if names_training_arguments(module, call.func):
            for keyword in call.keywords:
                yield from _draft(context, rule, keyword)


def _draft(context: Context, rule: Rule, keyword: ast.keyword) -> Iterator[Draft]:
    value = keyword.value
    name = keyword.arg or ""
    if is_constant(value, None, False, ""):
        return
    message = f"`{name}` is for CUDA"
    if name == "tf32":
        for switch in (arm for arm in arms(value) if is_constant(arm, True)):
            draft = kept_on_cuda(context, rule, switch, "None")
            draft.message = message
            yield draft
    elif name == "optim" and any(part in str(getattr(value, "value", "")) for part in ("bnb", "8bit", "apex")):
        yield Draft(rule, value, Role.NEUTRAL, message=message, reason='use "adamw_torch"')
    elif name in REPORTED:
        yield Draft(rule, value, Role.NEUTRAL, message=message, reason=REPORTED[name])
