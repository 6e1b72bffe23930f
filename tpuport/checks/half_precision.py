"""float16 chosen by a test for CUDA: a TPU wants bfloat16, so the test can not simply move."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import is_constant
from tpuport.analysis.guards import atoms
from tpuport.analysis.module import Module
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule

HALF = {"torch.float16", "torch.half", "float16", "fp16", "half"}
BFLOAT16 = {"torch.bfloat16", "bfloat16", "bf16"}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for float16 where CUDA's presence alone decides for it."""
    module = context.module
    for choice in module.of_type(ast.IfExp):
        half = _dtype(module, choice.body) in HALF
        alone = _dtype(module, choice.orelse) in BFLOAT16 and (half or is_constant(choice.body, None))
        if not half and not alone:
            continue
        if not any(context.guards.cuda_sources(condition) for condition in atoms(choice.test, True)):
            continue
        if alone:
            yield Draft(rule, choice.body, Role.CUDA_ONLY)
        elif half:
            yield Draft(rule, choice.body, Role.BLOCKS, reason="on a TPU choose bfloat16, which needs no loss scaling")


def _dtype(module: Module, node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    return module.qualified(node)
