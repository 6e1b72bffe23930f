"""A process group over Gloo in code that computes on an accelerator: Gloo carries CUDA's tensors and no TPU's."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import is_constant
from tpuport.analysis.devices import cuda_devices
from tpuport.analysis.module import Module
from tpuport.checks.nccl_backend import names_backend_of_group
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every group that is made over Gloo alone, in a file that computes on an accelerator."""
    module = context.module
    named = [node for node in module.of_type(ast.Constant) if is_constant(node, "gloo")]
    named = [node for node in named if names_backend_of_group(module, node)]
    if named and _computes_on_accelerator(module):
        reason = "name the accelerator's backend for its tensors, or both: `cpu:gloo,<type>:<its backend>`"
        yield from (Draft(rule, node, Role.NEUTRAL, reason=reason) for node in named)


def _computes_on_accelerator(module: Module) -> bool:
    """Whether a file speaks of CUDA, or of what migration puts in its place."""
    return (
        bool(module.calls_by_method.get("cuda"))
        or bool(cuda_devices(module))
        or any(use.name.startswith(("torch.cuda.", "torch.accelerator.")) for use in module.uses)
    )
