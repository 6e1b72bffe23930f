"""The TPUs of Lightning, Accelerate and transformers, which are those of PyTorch/XLA."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import is_constant
from tpuport.analysis.module import dotted
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule, Severity

ARGUMENTS = {"tpu_cores", "tpu_num_cores", "tpu_metrics_debug"}
STRATEGIES = {"XLAStrategy", "SingleDeviceXLAStrategy", "XLAFSDPStrategy", "TPUSpawnStrategy", "SingleTPUStrategy"}
TESTS = {"is_torch_xla_available", "is_torch_tpu_available", "is_tpu_available", "is_xla_available"}
KINDS = {"DistributedType.TPU", "DistributedType.XLA"}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every setting or test of such a framework."""
    module = context.module
    for call in module.of_type(ast.Call):
        name = dotted(call.func).rpartition(".")[2]
        for keyword in call.keywords:
            trains = name in ("Trainer", "Fabric", "TrainingArguments", "Seq2SeqTrainingArguments")
            tpu = keyword.arg == "accelerator" and is_constant(keyword.value, "tpu")
            if trains and (tpu or keyword.arg in ARGUMENTS):
                reason = "leave it to the framework's own choice of the accelerator, or hand it a device of torch"
                yield Draft(rule, keyword.value, Role.NEUTRAL, reason=reason)
        if name in TESTS:
            reason = "without torch_xla it is false: what it guards does not run"
            yield Draft(rule, call, Role.NEUTRAL, reason=reason, severity=Severity.INFO)
    for node in module.of_type(ast.Attribute):
        if node.attr in ("TPU", "XLA") and dotted(node) in KINDS:
            reason = "torch_tpu runs as any other accelerator does: compare the device's type"
            yield Draft(rule, node, Role.NEUTRAL, reason=reason)
    for use in module.uses:
        if use.name.rpartition(".")[2] in STRATEGIES and use.name.split(".")[0] in ("lightning", "pytorch_lightning"):
            reason = "the framework's DDP or FSDP strategy stands for it, one process a TPU"
            yield Draft(rule, use.node, Role.NEUTRAL, reason=reason)
