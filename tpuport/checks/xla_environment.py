"""Environment variables that PyTorch/XLA reads."""

import ast
import re
from collections.abc import Iterator

from tpuport.analysis.calls import is_constant
from tpuport.analysis.module import Module, dotted
from tpuport.draft import Context, Draft, Role
from tpuport.model import RemoveStatement, Rule

VARIABLE = re.compile(
    r"(PJRT_DEVICE|XRT_\w+|XLA_USE_BF16|XLA_DOWNCAST_BF16|XLA_USE_SPMD|XLA_IR_DEBUG|XLA_HLO_DEBUG|XLA_USE_EAGER_DEBUG_MODE"
    r"|XLA_NO_SPECIAL_SCALARS|PT_XLA_DEBUG\w*|TPU_NUM_DEVICES|XLA_PERSISTENT_CACHE_PATH|XLA_STABLEHLO_COMPILE)$"
)
WITHOUT_EFFECT = re.compile(r"XRT_TPU_CONFIG|XLA_IR_DEBUG|XLA_HLO_DEBUG|PT_XLA_DEBUG\w*|XLA_PERSISTENT_CACHE_PATH")
REASONS = {
    "XLA_USE_BF16": "it computed every float in bfloat16: `model.to(torch.bfloat16)` says so in the code",
    "XLA_DOWNCAST_BF16": "it computed every float in bfloat16: `model.to(torch.bfloat16)` says so in the code",
    "XLA_USE_SPMD": "sharding by annotation becomes DTensor or `fully_shard`",
    "TPU_NUM_DEVICES": "how many processes there are is said to torchrun: `--nproc-per-node`",
}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every such variable that is set or read."""
    module = context.module
    for node in module.of_type(ast.Constant):
        if type(node.value) is not str or not VARIABLE.match(node.value) or not _is_environment(module, node):
            continue
        message = rule.message.replace("{name}", node.value)
        statement = module.statement(node)
        if _sets(module, statement, node) and _has_no_effect(node.value, statement):
            edits = (RemoveStatement(module.span(statement)),)
            yield Draft(rule, node, Role.MOVES, edits, message)
        else:
            reason = REASONS.get(node.value, "torch_tpu does not read it: what depends on it has to be judged by hand")
            yield Draft(rule, node, Role.BLOCKS, message=message, reason=reason)


def _is_environment(module: Module, node: ast.Constant) -> bool:
    parent = module.parents[node]
    if isinstance(parent, ast.Subscript):
        return dotted(parent.value).endswith("environ")
    if isinstance(parent, ast.Compare):
        return any(dotted(side).endswith("environ") for side in parent.comparators)
    return isinstance(parent, ast.Call) and "env" in dotted(parent.func) and parent.args[:1] == [node]


def _sets(module: Module, statement: ast.stmt, node: ast.Constant) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Subscript(slice=key)]):
            return key is node
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="setdefault" | "putenv"))):
            return module.parents[node] is statement.value
    return False


def _has_no_effect(name: str, statement: ast.stmt) -> bool:
    if WITHOUT_EFFECT.match(name):
        return True
    value = statement.value if isinstance(statement, ast.Assign | ast.Expr) else None
    if isinstance(value, ast.Call):
        value = value.args[1] if len(value.args) > 1 else None
    return name == "PJRT_DEVICE" and is_constant(value, "TPU")
