"""What a test for CUDA becomes when it moves."""

import ast
import re

from tpuport.analysis.devices import default_device_kind
from tpuport.analysis.guards import compares_with_cuda
from tpuport.analysis.module import Module, dotted
from tpuport.checks.device_comparison import is_mode, subject
from tpuport.model import Edit, Replace
from tpuport.settle.chains import Chain

OTHER_DEVICES = re.compile(r"[\"'](mps|xpu|npu|hpu|meta|mlu|xla|ipu|dml|directml|vulkan|privateuseone)[\"':]")


def why_unsafe(module: Module) -> str:
    """Why moving a comparison may change what a third kind of device does; empty when the file names none."""
    if other := OTHER_DEVICES.search(module.source):
        return f"the file also speaks of {other[1]!r} devices, for which the answer would change too"
    return ""


def moved(module: Module, test: ast.expr, chain: Chain) -> Edit:
    """The edit that makes a comparison with CUDA one that holds for the accelerator at hand.

    The type of a device is compared with the CPU's, for which the answer is the same on CUDA and CPU. A text, and a
    type in a branch that makes a device, is compared with the accelerator's own name.
    """
    device = subject(test)
    assert device is not None
    parent = module.parents[test]
    hole = (module.span(device),)
    if isinstance(test, ast.Attribute):
        if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
            return Replace(module.span(parent), '{0}.device.type == "cpu"', hole)
        return Replace(module.span(test), '{0}.device.type != "cpu"', hole)
    makes_device = any(draft.rule.name == "device-literal" for draft in chain.drafts)
    equality = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq | ast.NotEq)
    if equality and ((_is_type(test) and not makes_device) or _is_cuda_or_cpu(module, test)):
        operator = "!=" if compares_with_cuda(test) else "=="
        return Replace(module.span(test), f'{{0}} {operator} "cpu"', hole)
    return Replace(module.span(_literal_of(test)), "{accelerator_type}")


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
