"""Times of profiler events under CUDA's names, and the autograd profiler's switch for CUDA."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule

TIMES = {"cuda_time_total", "self_cuda_time_total", "cuda_memory_usage", "self_cuda_memory_usage"}
PROFILE = "torch.autograd.profiler.profile"


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every read of such a time, and for `use_cuda`."""
    module = context.module
    for node in (node for time in TIMES for node in module.attributes_by_name.get(time, [])):
        if isinstance(node.ctx, ast.Load):
            name = node.attr.replace("cuda", "device")
            yield Draft(
                rule,
                node,
                Role.NEUTRAL,
                message=f"`{node.attr}` is an old name that newer torch lacks",
                reason=f"the events of torch.profiler call it `{name}`; what this object is is not followed",
            )
    for call in module.calls_of(PROFILE):
        used = argument(call, None, "use_cuda")
        if used is not None and not is_constant(used, False, None):
            yield Draft(
                rule,
                call,
                Role.NEUTRAL,
                message="`use_cuda` records CUDA alone, and elsewhere the CPU only",
                reason="`torch.profiler.profile()` records the accelerator that is there",
            )
