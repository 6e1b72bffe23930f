"""What the emulated TPU lacks and a TPU has: operations and features that are stood in for, and said so.

XLA's CPU backend aborts the process on some programs (HLO `scan`), and refuses others. The operations concerned are
implemented anew on the tpu device's dispatch key: that holds in eager mode, under autograd and in torch.compile.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.library import Library

from tpuport.profile.pjrt import PluginTable
from tpuport.profile.standins import bags, features, linear_algebra, masks, matmul, quantization, scans
from tpuport.profile.standins.operation import Report, StandIn

_KEY = "PrivateUse1"
_GRADIENTS = "AutogradPrivateUse1"
OPERATIONS: tuple[StandIn, ...] = (
    *scans.OPERATIONS,
    *masks.OPERATIONS,
    *bags.OPERATIONS,
    *quantization.OPERATIONS,
    *linear_algebra.OPERATIONS,
    *matmul.OPERATIONS,
)
"""Every operation that is stood in for."""


def install(report: Report, table: PluginTable) -> Library:
    """Put every stand-in into place; the operations last as long as the library that is returned.

    Must run before the device is used first.
    """
    reported: set[str] = set()

    def used(what: str, how: str) -> None:
        if what not in reported:
            reported.add(what)
            report(what, how)

    # First of all: what follows may already wake the device.
    features.install(used, table)
    library = Library("aten", "IMPL")
    for stand_in in OPERATIONS:
        library.impl(stand_in.name, _reporting(stand_in, used), _GRADIENTS if stand_in.differentiates else _KEY)
    return library


def _reporting(stand_in: StandIn, used: Report) -> Callable[..., Any]:
    @functools.wraps(stand_in.function)
    def run(*arguments: Any, **keywords: Any) -> Any:
        used(stand_in.what, stand_in.how)
        return stand_in.function(*arguments, **keywords)

    # Where it is called eagerly between the graphs of a broken frame, Dynamo would compile it as the user's code.
    hidden: Callable[..., Any] = torch.compiler.disable(run)
    return hidden
