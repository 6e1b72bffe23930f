"""`torch.cuda` reached by name: in strings for mocks and look-ups, and through `getattr`."""

import ast
import re
from collections.abc import Iterator

from tpuport.analysis.calls import is_constant
from tpuport.analysis.module import Module, canonical
from tpuport.analysis.scopes import Kind
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule

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
            if origins:
                message = f"{name.id} is {origins[0]}, or something else, as its imports go"
                yield Draft(rule, name, Role.BLOCKS, message=message, reason="which of them runs is not known")
    for function in ("getattr", "hasattr"):
        for call in module.calls_by_function.get(function, []):
            asked = len(call.args) > 1 and is_constant(call.args[1], "cuda")
            if asked and module.qualified(call.args[0]) == "torch":
                yield Draft(rule, call, Role.BLOCKS, reason="what is asked of the module found is not followed")


def _imported(module: Module) -> set[str]:
    """Names that some scope binds to a part of torch.cuda."""
    return {
        name
        for scope in module.own_scopes.values()
        for name, bindings in scope.bindings.items()
        for binding in bindings
        if binding.kind is Kind.IMPORT and canonical(binding.origin).startswith("torch.cuda.")
    }
