"""LayerNorms that get half precision under autocast: beside float32 weights torch_tpu cannot compile them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tpuport.analysis.calls import argument
from tpuport.analysis.module import Module, dotted
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule

_NORM = "torch.nn.LayerNorm"
_HALVING_MODULES = frozenset(
    f"torch.nn.{name}"
    for name in (
        "Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
    )
)  # fmt: skip
_HALVING_FUNCTIONS = frozenset(
    ("torch.matmul", "torch.mm", "torch.bmm", "torch.nn.functional.linear", "torch.nn.functional.conv1d",
     "torch.nn.functional.conv2d", "torch.nn.functional.conv3d")
)  # fmt: skip
"""What autocast computes in half precision."""

_KEEPING_MODULES = frozenset(
    f"torch.nn.{name}" for name in ("ReLU", "GELU", "SiLU", "Tanh", "LeakyReLU", "Dropout", "Identity", "Flatten")
)
_KEEPING_FUNCTIONS = frozenset(
    ("torch.relu", "torch.tanh", "torch.nn.functional.relu", "torch.nn.functional.gelu", "torch.nn.functional.silu",
     "torch.nn.functional.dropout")
)  # fmt: skip
_KEEPING_METHODS = frozenset(
    ("view", "reshape", "transpose", "permute", "flatten", "unflatten", "contiguous", "squeeze", "unsqueeze")
)
"""What leaves the type of its input as it is."""


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every LayerNorm with weights whose input is sure to be half precision under autocast."""
    module = context.module
    if not context.project.facts.autocasts and "autocast" not in module.source:
        return
    for call in module.calls_of("torch.nn.Sequential"):
        yield from (Draft(rule, norm, Role.NEUTRAL) for norm in _in_sequence(module, call))
    norms = {up for call in module.calls_of(_NORM) for _, up in module.ancestors(call)}
    for class_ in module.of_type(ast.ClassDef):
        if class_ not in norms or "LayerNorm" not in module.text(class_):
            continue
        parts = _Parts.of(module, class_)
        if _NORM in parts.made.values():
            yield from (Draft(rule, norm, Role.NEUTRAL) for norm in _in_methods(module, class_, parts))


def _in_sequence(module: Module, sequence: ast.Call) -> Iterator[ast.Call]:
    half = False
    for part in sequence.args:
        made = _made(module, part)
        if made == _NORM and half and isinstance(part, ast.Call):
            yield part
        half = made in _HALVING_MODULES or (half and made in _KEEPING_MODULES)


def _in_methods(module: Module, class_: ast.ClassDef, parts: "_Parts") -> Iterator[ast.Call]:
    for node in ast.walk(class_):
        if (
            isinstance(node, ast.Call)
            and parts.made.get(dotted(node.func)) == _NORM
            and len(node.args) == 1
            and not _turns_autocast_off(module, node)
            and parts.is_half(node.args[0])
        ):
            yield node


def _turns_autocast_off(module: Module, node: ast.AST) -> bool:
    """Whether a `with` around `node` may turn autocast off."""
    contexts = (
        module.text(item.context_expr)
        for _, parent in module.ancestors(node)
        if isinstance(parent, ast.With)
        for item in parent.items
    )
    return any("autocast" in text and "enabled" in text for text in contexts)


def _made(module: Module, node: ast.expr) -> str:
    """The class of torch.nn that an expression makes an object of; empty for a LayerNorm without float32 weights."""
    if not isinstance(node, ast.Call):
        return ""
    name = module.callee(node)
    if name != _NORM:
        return name
    affine, dtype = argument(node, 2, "elementwise_affine"), argument(node, None, "dtype")
    has_weights = affine is None or (isinstance(affine, ast.Constant) and affine.value is True)
    return name if has_weights and dtype is None else ""


@dataclass(frozen=True)
class _Parts:
    """What the attributes of a module are made of: `self.norm` → its class, where one assignment says so."""

    module: Module
    made: dict[str, str]

    @classmethod
    def of(cls, module: Module, class_: ast.ClassDef) -> "_Parts":
        made: dict[str, str] = {}
        for node in ast.walk(class_):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                name = dotted(node.targets[0])
                if name.startswith("self."):
                    made[name] = "" if name in made else _made(module, node.value)
        return cls(module, made)

    def is_half(self, node: ast.expr) -> bool:
        """Whether autocast makes the value half precision."""
        match node:
            case ast.BinOp(op=ast.MatMult()):
                return True
            case ast.Name():
                value = self._assigned(node)
                return value is not None and self.is_half(value)
            case ast.Call(func=function, args=arguments):
                name = self.module.callee(node) or self.made.get(dotted(function), "")
                if name in _HALVING_MODULES | _HALVING_FUNCTIONS:
                    return True
                if name in _KEEPING_MODULES | _KEEPING_FUNCTIONS and arguments:
                    return self.is_half(arguments[0])
                keeps = not name and isinstance(function, ast.Attribute) and function.attr in _KEEPING_METHODS
                return keeps and isinstance(function, ast.Attribute) and self.is_half(function.value)
        return False

    def _assigned(self, name: ast.Name) -> ast.expr | None:
        """The value that the last statement before, in the same block, gives to a name; None where that is not sure."""
        statement = self.module.statement(name)
        parent = self.module.parents[statement]
        block: list[ast.stmt] = next(
            (block for _, block in ast.iter_fields(parent) if isinstance(block, list) and statement in block), []
        )
        for before in reversed(block[: block.index(statement)] if block else []):
            if any(_stores(part, name.id) for part in ast.walk(before)):
                match before:
                    case ast.Assign(targets=[ast.Name()], value=value):
                        return value
                return None
        return None


def _stores(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
