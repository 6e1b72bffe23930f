"""transformers' attention by name: FlashAttention's kernels are CUDA's, and FlexAttention refuses a TPU."""

import ast
import re
from collections.abc import Iterator

from tpuport.analysis.calls import is_constant
from tpuport.analysis.devices import outer, parameter_of
from tpuport.analysis.module import Module, dotted
from tpuport.checks.choices import kept, kept_on_cuda
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule

FLASH = ("flash_attention_2", "flash_attention_3", "flash_attention_4")
FLEX = "flex_attention"
NAME = re.compile(r"attn_impl(ementation)?$|attention_impl(ementation)?$")
SWITCH = "use_flash_attention_2"


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every such name that is given to what says that it holds one."""
    module = context.module
    for text in module.of_type(ast.Constant):
        if is_constant(text, *FLASH, FLEX) and NAME.search(_receiver(module, text)):
            keep = kept if text.value == FLEX else kept_on_cuda
            yield keep(context, rule, text, '"sdpa"')
    for call in module.of_type(ast.Call):
        for keyword in call.keywords:
            if keyword.arg == SWITCH and not is_constant(keyword.value, False):
                reason = '`attn_implementation="sdpa"` runs on every device; this switch is gone since transformers 5'
                yield Draft(rule, keyword.value, Role.BLOCKS, reason=reason)


def _receiver(module: Module, text: ast.Constant) -> str:
    """The name that a value is given: of a keyword, a parameter, a variable, an attribute, a key or an option."""
    value = outer(module, text)
    parent = module.parents[value]
    match parent:
        case ast.keyword(arg="default"):
            call = module.parents[parent]
            names = [str(a.value) for a in getattr(call, "args", ()) if isinstance(a, ast.Constant)]
            return names[0].replace("-", "_") if names else ""
        case ast.keyword(arg=str(name)):
            return name
        case ast.arguments():
            return parameter_of(parent, value)
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
            return _target(target)
        case ast.Dict(keys=keys, values=values) if value in values:
            key = keys[values.index(value)]
            return str(key.value) if isinstance(key, ast.Constant) else ""
    return ""


def _target(target: ast.expr) -> str:
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        return str(target.slice.value)
    return target.attr if isinstance(target, ast.Attribute) else dotted(target)
