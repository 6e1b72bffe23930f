"""Imports of libraries that exist for CUDA alone, with what stands in for each on a TPU."""

import ast
from collections.abc import Iterator

from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule, Severity

STAND_INS = {
    "triton": "a stock PyTorch op under torch.compile, or a Pallas kernel",
    "flash_attn": "torch.nn.functional.scaled_dot_product_attention",
    "xformers": "torch.nn.functional.scaled_dot_product_attention",
    "apex": "torch.amp, torch.optim and torch.nn.LayerNorm",
    "amp_C": "torch.amp and torch.optim",
    "bitsandbytes": "torch.optim; there is no 8-bit counterpart on TPU",
    "transformer_engine": "stock torch.nn layers in bfloat16",
    "cupy": "torch operators",
    "pycuda": "torch operators",
    "numba.cuda": "torch operators, or a Pallas kernel",
    "pynvml": "torch.accelerator memory statistics",
    "nvidia.dali": "torch.utils.data with CPU transforms",
    "tensorrt": "torch.compile",
    "torch_tensorrt": "torch.compile",
    "deepspeed": "torch.distributed.fsdp.fully_shard",
    "torch.utils.cpp_extension": "a stock PyTorch op, or a Pallas kernel",
}
"""Importable name → what to use in its place."""


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every import of such a library; optional imports (under `try`) are told as information."""
    module = context.module
    imports: list[ast.Import | ast.ImportFrom] = [*module.of_type(ast.Import), *module.of_type(ast.ImportFrom)]
    for node in imports:
        for name in _imported(node):
            library = next((key for key in STAND_INS if name == key or name.startswith(key + ".")), None)
            if library is None:
                continue
            optional = any(isinstance(parent, ast.Try) for _, parent in module.ancestors(node))
            yield Draft(
                rule,
                node,
                Role.NEUTRAL,
                message=f"{library} is for CUDA only",
                reason=f"on a TPU use {STAND_INS[library]}",
                severity=Severity.INFO if optional else None,
            )
            break


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif not node.level and node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
