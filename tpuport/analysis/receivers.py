"""The name under which a value is kept: by that name it is found again in the other files of a run."""

import ast

from tpuport.analysis.devices import outer, parameter_of
from tpuport.analysis.module import Module, dotted


def receiver(module: Module, node: ast.expr) -> str:
    """The keyword, parameter, variable, key or option that a value is given to; empty where it has no name.

    Attributes count without what they are attributes of, and options by the attribute that they become.
    """
    value = outer(module, node)
    parent = module.parents[value]
    match parent:
        case ast.keyword(arg="default"):
            return _declared(module, parent)
        case ast.keyword(arg=str(name)):
            return name
        case ast.arguments():
            return parameter_of(parent, value)
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
            return _name(target)
        case ast.Dict(keys=keys, values=values) if value in values:
            return _text(keys[values.index(value)])
    return ""


def _declared(module: Module, default: ast.keyword) -> str:
    """What a default belongs to: an option of the command line, or a field of a class (`x: str = field(default=…)`)."""
    call = module.parents[default]
    if not isinstance(call, ast.Call):
        return ""
    owner = module.parents[call]
    if isinstance(owner, ast.AnnAssign):
        return _name(owner.target)
    written = [text for argument in call.args if (text := _text(argument))]
    named = next((_text(keyword.value) for keyword in call.keywords if keyword.arg == "dest"), "")
    long = next((text for text in written if text.startswith("--")), "")
    return named or long.lstrip("-").replace("-", "_")


def _name(target: ast.expr) -> str:
    return _text(target.slice) if isinstance(target, ast.Subscript) else dotted(target).rpartition(".")[2]


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
