"""`torch.cuda` reached by name: in strings for mocks and look-ups, and through `getattr`."""

import ast
import re
from collections.abc import Iterator

from tpuport.analysis.calls import is_constant
from tpuport.analysis.module import Module, canonical
from tpuport.analysis.scopes import Kind
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule, Severity

PATH = re.compile(r"torch\.cuda(\.[A-Za-z_]\w*)*$")
TENSOR_TYPE = re.compile(r"torch\.cuda\.\w+Tensor$")


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every look-up that follows no name of the source."""
    module = context.module
    for node in module.texts:
        text = str(node.value)
        if text.startswith("torch.cuda") and PATH.match(text) and not TENSOR_TYPE.match(text):
            reason = f"what takes the place of {text} has to follow the code that it stands for"
            yield Draft(rule, node, Role.BLOCKS, reason=reason)
    imported = _imported(module)
    for name in module.of_type(ast.Name) if imported else ():
        if name.id in imported and isinstance(name.ctx, ast.Load) and not module.qualified(name):
            origins = sorted(o for o in module.possible_origins(name) if o.startswith("torch.cuda."))
            if origins and _is_fallback(context, name.id):
                reason = "torch has what is tried first, so that is what runs"
                yield Draft(rule, name, Role.NEUTRAL, severity=Severity.INFO, reason=reason)
            elif origins:
                message = f"{name.id} is {origins[0]}, or something else, as its imports go"
                yield Draft(rule, name, Role.BLOCKS, message=message, reason="which of them runs is not known")
    for function in ("getattr", "hasattr"):
        for call in module.calls_by_function.get(function, []):
            asked = len(call.args) > 1 and is_constant(call.args[1], "cuda")
            if asked and module.qualified(call.args[0]) == "torch":
                yield Draft(rule, call, Role.BLOCKS, reason="what is asked of the module found is not followed")


SINCE = {"GradScaler": "2.3", "autocast": "1.10"}
"""The torch since which `torch.amp` has a name."""


def _is_fallback(context: Context, name: str) -> bool:
    """Whether a name is imported from torch.cuda only where a `try` finds none in torch, which has it here."""
    module = context.module
    imports = [node for node in module.of_type(ast.ImportFrom) if _imports(node, name)]
    found = {node.module: module.parents[node] for node in imports}
    tried, handler = found.get("torch.amp"), found.get("torch.cuda.amp")
    if len(imports) != 2 or not isinstance(tried, ast.Try):
        return False
    return handler in tried.handlers and context.has_torch(SINCE.get(name, "99"))


def _imports(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.ImportFrom) and any((alias.asname or alias.name) == name for alias in node.names)


def _imported(module: Module) -> set[str]:
    """Names that some scope binds to a part of torch.cuda."""
    return {
        name
        for scope in module.own_scopes.values()
        for name, bindings in scope.bindings.items()
        for binding in bindings
        if binding.kind is Kind.IMPORT and canonical(binding.origin).startswith("torch.cuda.")
    }
