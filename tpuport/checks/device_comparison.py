"""Tests of a device for CUDA: `d.type == "cuda"`, `"cuda" in d`, `t.is_cuda`, and the type taken from a string."""

import ast
from collections.abc import Iterator

from tpuport.analysis.guards import compares_with_cuda
from tpuport.analysis.module import Module, dotted
from tpuport.draft import Context, Draft, Role
from tpuport.model import Replace, Rule, Severity


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """Drafts for device types taken out of strings and for lists of devices; plain tests are settled with guards."""
    module = context.module
    for choice in module.of_type(ast.IfExp):
        if type_of_device(choice):
            yield Draft(rule, choice, Role.MOVES, (_type_edit(module, choice),))
    for node in module.of_type(ast.Compare):
        listed = any(_lists_cuda(part) for part in node.comparators) and isinstance(node.ops[0], ast.In | ast.NotIn)
        if listed and keeps_cuda_and_cpu(node):
            reason = "it tells CUDA and the CPU from other accelerators"
            yield Draft(rule, node, Role.NEUTRAL, reason=reason, severity=Severity.INFO)
        elif listed and not _chooses_option(module, node):
            mode = is_mode(dotted(node.left))
            reason = "the other values of the list decide what it means"
            yield Draft(rule, node, Role.NEUTRAL if mode else Role.BLOCKS, reason=reason, severity=_info(mode))
    for text in module.texts:
        if text.value == "cuda:" and _takes_apart(module, text):
            reason = "it takes a CUDA device's name apart; for another accelerator the name is another"
            yield Draft(rule, text, Role.BLOCKS, reason=reason)
    for call in module.calls_by_method.get("startswith", []):
        if _several_prefixes(call):
            yield Draft(rule, call, Role.BLOCKS, reason="the other prefixes decide what it means")


def _takes_apart(module: Module, text: ast.Constant) -> bool:
    """Whether `"cuda:"` is looked for in a string, or cut out of it."""
    match module.parents[text]:
        case ast.Compare():
            return True
        case ast.Call(
            func=ast.Attribute(attr="startswith" | "replace" | "split" | "strip" | "lstrip" | "removeprefix")
        ):
            return True
    return False


def _info(certain: bool) -> Severity | None:
    return Severity.INFO if certain else None


OPTIONS = {
    *("mode", "dynamic", "capturable"),
    *("mixed_precision", "fp16", "bf16", "fp16_full_eval", "bf16_full_eval"),
    *("device_map", "attn_implementation", "_attn_implementation", "default"),
}
"""Arguments for which migrated code keeps CUDA's and the CPU's value by a list of the two."""


def _chooses_option(module: Module, test: ast.Compare) -> bool:
    """Whether it keeps an option for CUDA and the CPU, as the rules for torch.compile and the frameworks write it."""
    parent = module.parents[test]
    while isinstance(parent, ast.IfExp | ast.BoolOp):
        parent = module.parents[parent]
    return isinstance(parent, ast.keyword) and parent.arg in OPTIONS


def keeps_cuda_and_cpu(test: ast.AST) -> bool:
    """Whether it is `device.type in ("cuda", "cpu")`, or `not in`: what rules write where these two keep a value."""
    match test:
        case ast.Compare(
            left=ast.Attribute(attr="type"),
            ops=[ast.In() | ast.NotIn()],
            comparators=[ast.Tuple(elts=[ast.Constant(value="cuda"), ast.Constant(value="cpu")])],
        ):
            return True
    return False


def _lists_cuda(node: ast.expr) -> bool:
    return isinstance(node, ast.Tuple | ast.List | ast.Set) and any(
        isinstance(element, ast.Constant) and element.value in ("cuda", "cuda:0") for element in node.elts
    )


def _several_prefixes(call: ast.Call) -> bool:
    return len(call.args) == 1 and _lists_cuda(call.args[0])


def type_of_device(choice: ast.IfExp) -> ast.expr | None:
    """The device in `"cuda" if <device is CUDA> else "cpu"`; None for any other expression."""
    arms = [choice.body, choice.orelse]
    values = [arm.value if isinstance(arm, ast.Constant) else None for arm in arms]
    wanted = compares_with_cuda(choice.test)
    if wanted is None or values != (["cuda", "cpu"] if wanted else ["cpu", "cuda"]):
        return None
    return subject(choice.test)


def _type_edit(module: Module, choice: ast.IfExp) -> Replace:
    device = type_of_device(choice)
    assert device is not None
    if isinstance(choice.test, ast.Attribute):
        return Replace(module.span(choice), "{0}.device.type", (module.span(device),))
    if isinstance(device, ast.Attribute) and device.attr == "type":
        return Replace(module.span(choice), "{0}", (module.span(device),))
    return Replace(module.span(choice), "torch.device({0}).type", (module.span(device),))


MODES = {
    "impl",
    "implementation",
    "mode",
    "backend",
    "kernel",
    "method",
    "engine",
    "variant",
    "algorithm",
    "algo",
    "op",
    "platform",
    "framework",
    "language",
}


def is_mode(name: str) -> bool:
    """Whether a variable's name says that its values are modes, of which `cuda` may be one."""
    return name.rpartition(".")[2].lower() in MODES


def subject(test: ast.expr) -> ast.expr | None:
    """What a test for CUDA looks at; `str(x)` counts as x."""
    match test:
        case ast.Compare(left=ast.Constant(), comparators=[value]):
            node = value
        case ast.Compare(left=left):
            node = left
        case ast.Call(func=ast.Attribute(value=base)):
            node = base
        case ast.Attribute(value=base):
            node = base
        case ast.Call(func=ast.Name(), args=[value, _]):
            node = value
        case _:
            return None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str" and len(node.args) == 1:
        return node.args[0]
    return node
