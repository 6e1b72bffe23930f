"""The TPUs of Lightning, Accelerate and transformers, which are those of PyTorch/XLA."""

from collections.abc import Iterator

from tpuport.analysis.calls import is_constant
from tpuport.analysis.module import dotted
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule, Severity

ARGUMENTS = {"tpu_cores", "tpu_num_cores", "tpu_metrics_debug"}
STRATEGIES = {"XLAStrategy", "SingleDeviceXLAStrategy", "XLAFSDPStrategy", "TPUSpawnStrategy", "SingleTPUStrategy"}
TESTS = {"is_torch_xla_available", "is_torch_tpu_available", "is_tpu_available", "is_xla_available"}
TRAINERS = {"Trainer", "Fabric", "TrainingArguments", "Seq2SeqTrainingArguments"}
KINDS = {"DistributedType.TPU", "DistributedType.XLA"}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every setting or test of such a framework."""
    module = context.module
    for name in ("accelerator", *ARGUMENTS):
        for call, keyword in module.passed_as(name):
            if dotted(call.func).rpartition(".")[2] in TRAINERS and (
                name in ARGUMENTS or is_constant(keyword.value, "tpu")
            ):
                reason = "leave it to the framework's own choice of the accelerator, or hand it a device of torch"
                yield Draft(rule, keyword.value, Role.NEUTRAL, reason=reason)
    for call in (call for name in TESTS for call in module.calls_named(name)):
        if dotted(call.func):
            reason = "without torch_xla it is false: what it guards does not run"
            yield Draft(rule, call, Role.NEUTRAL, reason=reason, severity=Severity.INFO)
    for node in (node for name in ("TPU", "XLA") for node in module.attributes_by_name.get(name, [])):
        if dotted(node) in KINDS:
            reason = "torch_tpu runs as any other accelerator does: compare the device's type"
            yield Draft(rule, node, Role.NEUTRAL, reason=reason)
    for use in module.uses:
        if use.name.rpartition(".")[2] in STRATEGIES and use.name.split(".")[0] in ("lightning", "pytorch_lightning"):
            reason = "the framework's DDP or FSDP strategy stands for it, one process a TPU"
            yield Draft(rule, use.node, Role.NEUTRAL, reason=reason)
