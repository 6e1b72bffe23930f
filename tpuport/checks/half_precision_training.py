"""float16 asked of Accelerate or of transformers' Trainer, which scale losses by what a TPU lacks."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant, is_unpacked
from tpuport.analysis.frameworks import names_training_arguments
from tpuport.checks.choices import KEPT, OTHERS, arms, kept
from tpuport.draft import Context, Draft, Role
from tpuport.model import Replace, Rule, SetArgument

PAIRS = {"fp16": "bf16", "fp16_full_eval": "bf16_full_eval"}
"""Switches of float16, each with that of bfloat16."""


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every switch of float16, and for an Accelerator or an option of that precision."""
    module = context.module
    for call in module.of_type(ast.Call):
        if names_training_arguments(module, call.func):
            for half, other in PAIRS.items():
                yield from _switch(context, rule, call, half, other)
        value = _mixed_precision(context, call)
        if value is not None:
            for text in arms(value):
                if text.value == "fp16":
                    yield kept(context, rule, text, '"bf16"')


def _mixed_precision(context: Context, call: ast.Call) -> ast.expr | None:
    """The precision that a call gives Accelerate, or an option for it its default."""
    if context.module.callee(call) in ("accelerate.Accelerator", "accelerate.accelerator.Accelerator"):
        return argument(call, 2, "mixed_precision")
    named = any(is_constant(name, "--mixed_precision", "--mixed-precision") for name in call.args)
    is_option = isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"
    return argument(call, None, "default") if named and is_option else None


def _switch(context: Context, rule: Rule, call: ast.Call, half: str, other: str) -> Iterator[Draft]:
    module = context.module
    value = argument(call, None, half)
    if value is None or is_constant(value, False, None) or _asks_for_device(value):
        return
    beside = argument(call, None, other)
    if is_unpacked(call) or not (beside is None or is_constant(beside, False, None)):
        reason = f"on a TPU `{other}` has to take its place, which something else decides here"
        yield Draft(rule, value, Role.NEUTRAL, reason=reason)
        return
    span = module.span(value)
    given = "" if is_constant(value, True) else "{0} and "
    yield Draft(
        rule,
        value,
        Role.MOVES,
        (
            Replace(span, given + KEPT, (span,)),
            SetArgument(module.span(call), other, given + OTHERS, (span,)),
        ),
    )


def _asks_for_device(value: ast.expr) -> bool:
    """Whether a list of device types decides, as migrated code has it."""
    return any(
        isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn) and _lists_cuda(node)
        for node in ast.walk(value)
    )


def _lists_cuda(test: ast.Compare) -> bool:
    return any(is_constant(node, "cuda") for side in test.comparators for node in ast.walk(side))
