"""Ray's GPUs: what asks for them, and what asks for TPUs."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import is_constant
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule

SCALING = 'for a TPU `use_tpu=True`, `resources_per_worker={"TPU": 1}`, and `topology=` with `accelerator_type=`'
RESOURCES = 'for a TPU `resources={"TPU": 1}`, a chip for each'
IDS = 'for a TPU `ray.get_runtime_context().get_accelerator_ids()["TPU"]`'


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every request for GPUs, and for every question about those that were given."""
    module = context.module
    if not any(use.name.partition(".")[0] == "ray" for use in module.uses):
        return
    for call in module.of_type(ast.Call):
        callee = module.callee(call)
        for keyword in call.keywords:
            if is_constant(keyword.value, False, None, 0):
                continue
            if keyword.arg == "use_gpu" and callee.startswith("ray."):
                yield Draft(rule, keyword.value, Role.NEUTRAL, reason=SCALING)
            elif keyword.arg == "num_gpus" and (callee.startswith("ray.") or _is_options(call)):
                yield Draft(rule, keyword.value, Role.NEUTRAL, reason=RESOURCES)
        if callee == "ray.get_gpu_ids":
            yield Draft(rule, call, Role.NEUTRAL, message="it tells the GPUs that Ray gave", reason=IDS)


def _is_options(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in ("options", "remote")
