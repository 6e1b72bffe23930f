"""What a test for CUDA becomes when it moves."""

import ast
import re

from tpuport.analysis.devices import default_device_kind
from tpuport.analysis.guards import compares_with_cuda, cuda_tensor_types
from tpuport.analysis.module import Module, dotted
from tpuport.checks.device_comparison import is_mode, subject
from tpuport.checks.tensor_type_alias import DTYPES
from tpuport.model import Edit, Replace
from tpuport.settle.chains import Chain, is_expected

OTHER_DEVICES = re.compile(r"[\"'](mps|xpu|npu|hpu|mlu|xla|ipu|dml|directml|vulkan|privateuseone)[\"':]")

META_DEVICE = re.compile(r"device\W{1,3}[\"'](meta)[\"']")
"""A common word, so only where it stands beside `device`."""


def others(module: Module) -> tuple[str, ...]:
    """The types of devices that the file speaks of besides CUDA and CPU, in alphabetical order."""
    named = {found[1] for pattern in (OTHER_DEVICES, META_DEVICE) for found in pattern.finditer(module.source)}
    return tuple(sorted(named))


def moved(module: Module, test: ast.expr, chain: Chain) -> tuple[Edit, str]:
    """The edit that makes a comparison with CUDA one that holds for the accelerator at hand, and why it is unsafe.

    The type of a device is compared with the CPU's, and with what else the file speaks of: for CUDA and all of these
    the answer is the same. A text, and a type in a branch that makes a device, is compared with the accelerator's own
    name, which gives another answer where a device of those others is the accelerator: that is unsafe. What a test
    expects of a tensor's device is the device at hand.
    """
    device = subject(test)
    assert device is not None
    parent = module.parents[test]
    hole = (module.span(device),)
    known = others(module)
    if kinds := cuda_tensor_types(test):
        is_tensor = "" if dotted(device).endswith(".data") else "isinstance({0}, torch.Tensor) and "
        dtypes = ", ".join(DTYPES[kind] for kind in kinds)
        is_kind = f"in ({dtypes})" if len(kinds) > 1 else f"== {dtypes}"
        asked = f"{is_tensor}{{0}}.device.type {_is_one_of(known, False)} and {{0}}.dtype {is_kind}"
        return Replace(module.span(test), asked, hole), ""
    if isinstance(test, ast.Attribute):
        if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
            return Replace(module.span(parent), f"{{0}}.device.type {_is_one_of(known, True)}", hole), ""
        return Replace(module.span(test), f"{{0}}.device.type {_is_one_of(known, False)}", hole), ""
    makes_device = any(draft.rule.name == "device-literal" for draft in chain.drafts)
    equality = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn)
    if equality and is_expected(module, test) and _is_type(test):
        return Replace(module.span(_literal_of(test)), "{device.type}"), ""
    if equality and ((_is_type(test) and not makes_device) or _is_cuda_or_cpu(module, test)):
        is_other = not compares_with_cuda(test)
        return Replace(module.span(test), f"{{0}} {_is_one_of(known, is_other)}", hole), ""
    unsafe = f"the file also speaks of {known[0]!r} devices, for which the answer would change too" if known else ""
    return Replace(module.span(_literal_of(test)), "{accelerator_type}"), unsafe


def _is_one_of(known: tuple[str, ...], holds: bool) -> str:
    """The rest of a comparison of a device's type with the CPU's and those of `known`."""
    if not known:
        return f'{"==" if holds else "!="} "cpu"'
    listed = ", ".join(f'"{name}"' for name in ("cpu", *known))
    return f"{'in' if holds else 'not in'} ({listed})"


def tests_mode(test: ast.expr) -> bool:
    """Whether a comparison looks at the name of a mode."""
    value = subject(test)
    return value is not None and is_mode(dotted(value))


def _is_cuda_or_cpu(module: Module, test: ast.expr) -> bool:
    """Whether what is compared is a text that can only be `cuda` or `cpu`."""
    device = subject(test)
    value = module.only_value(device) if isinstance(device, ast.Name) else None
    return isinstance(value, ast.IfExp) and default_device_kind(module, value) == "text"


def _is_type(test: ast.expr) -> bool:
    device = subject(test)
    return device is not None and (
        (isinstance(device, ast.Attribute) and device.attr == "type") or dotted(device).endswith("device_type")
    )


def _literal_of(test: ast.expr) -> ast.expr:
    """The string that a test compares with."""
    match test:
        case ast.Compare(left=ast.Constant() as literal) | ast.Compare(comparators=[ast.Constant() as literal]):
            return literal
        case ast.Call(args=[literal]):
            return literal
    raise AssertionError(ast.dump(test))
