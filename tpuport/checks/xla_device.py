"""The device of PyTorch/XLA: `xm.xla_device()`, `torch_xla.device()`."""

import ast
from collections.abc import Iterator

from tpuport.analysis.devices import Place, outer, place
from tpuport.analysis.module import Module
from tpuport.analysis.xla import MODEL
from tpuport.draft import Context, Draft, Role
from tpuport.model import Replace, Rule

DEVICES = ("torch_xla.device", f"{MODEL}.xla_device")


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every use of a function that gives the device."""
    module = context.module
    for use in context.xla.of(*DEVICES):
        call = module.call_of(use.node)
        if call is None:
            yield Draft(rule, use.node, Role.BLOCKS, reason="it is passed on without being called")
        elif call.args or call.keywords:
            yield Draft(rule, call, Role.BLOCKS, reason="a device is picked by its number, and a process has one")
        elif _is_compared(module, call):
            yield Draft(rule, call, Role.BLOCKS, reason="compare `.type` with that of the accelerator")
        else:
            new = place(module, call) is Place.NAMED and outer(module, call) is call
            yield Draft(rule, call, Role.MOVES, (Replace(module.span(call), "{new device}" if new else "{device}"),))


def _is_compared(module: Module, call: ast.Call) -> bool:
    return place(module, call) is Place.COMPARED
