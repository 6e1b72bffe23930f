"""transformers' attention by name: FlashAttention's kernels are CUDA's, and FlexAttention refuses a TPU."""

import ast
import re
from collections.abc import Iterator

from tpuport.analysis.calls import is_constant
from tpuport.analysis.receivers import receiver
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
        if is_constant(text, *FLASH, FLEX) and NAME.search(receiver(module, text)):
            keep = kept if text.value == FLEX else kept_on_cuda
            yield keep(context, rule, text, '"sdpa"')
    for call in module.of_type(ast.Call):
        for keyword in call.keywords:
            if keyword.arg == SWITCH and not is_constant(keyword.value, False):
                reason = '`attn_implementation="sdpa"` runs on every device; this switch is gone since transformers 5'
                yield Draft(rule, keyword.value, Role.BLOCKS, reason=reason)
