"""Tests for a device of PyTorch/XLA."""

import ast
import re
from collections.abc import Iterator

from tpuport.analysis.devices import DEVICE_NAME
from tpuport.analysis.module import dotted
from tpuport.analysis.xla import MODEL, ROOT
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule

REASON = (
    'decide whether the branch is for every accelerator (`!= "cpu"`), for TPUs alone (`== "tpu"`), or goes with lazy '
    "tensors"
)
XLA = re.compile(r"xla(:\d*)?$")
TESTS = (
    f"{MODEL}.is_xla_tensor",
    f"{MODEL}.xla_device_hw",
    f"{MODEL}.xla_device_kind",
    "torch_xla.runtime.device_type",
)


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every test that tells XLA's devices from others."""
    module = context.module
    for use in context.xla.of(*TESTS):
        yield Draft(rule, module.call_of(use.node) or use.node, Role.BLOCKS, reason=REASON)
    if "torch" not in module.source:
        return
    for node in module.of_type(ast.Constant):
        if not isinstance(node.value, str) or not XLA.match(node.value):
            continue
        parent = module.parents[node]
        if isinstance(parent, ast.Tuple | ast.List | ast.Set):
            parent = module.parents[parent]
        if (isinstance(parent, ast.Compare) and (ROOT in module.source or _asks_device(parent))) or (
            isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.attr == "startswith"
        ):
            yield Draft(rule, parent, Role.BLOCKS, reason=REASON)


def _asks_device(test: ast.Compare) -> bool:
    sides = (dotted(side) for side in (test.left, *test.comparators))
    return any(side.endswith(".type") or DEVICE_NAME.search(side.rpartition(".")[2]) for side in sides if side)
