"""One operation that is stood in for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

Report = Callable[[str, str], None]
"""Told what is stood in for, and how."""

_IN_A_GRAPH = ("placeholder", "FX trace")
"""What torch_tpu says when a value is asked for while a graph is made."""
ON_CPU = "a round trip to the CPU"


class UnsupportedByEmulation(NotImplementedError):
    """An operation that a TPU runs and its emulation does not."""


@dataclass(frozen=True, slots=True)
class StandIn:
    """How the operation `name` of aten is computed on the emulated TPU."""

    name: str
    """Without `aten::`; with its overload, if it is not the default one."""
    what: str
    """What it is called in the report."""
    how: str
    function: Callable[..., Any]
    differentiates: bool = False
    """Whether `function` also takes the place of torch_tpu's own gradient, made of other operations with gradients."""


def on_cpu(name: str, *, in_graphs: bool) -> Callable[..., Any]:
    """Return a function that computes `aten::name` on the CPU.

    It can not be part of a compiled graph. `in_graphs` says whether the operation itself can, on a TPU.
    """
    operation = getattr(torch.ops.aten, name)

    def run(*arguments: Any, **keywords: Any) -> Any:
        device = next(value.device for value in arguments if isinstance(value, torch.Tensor))
        try:
            here = [_moved(value) for value in arguments]
            named = {name: _moved(value) for name, value in keywords.items()}
        except RuntimeError as error:
            if not any(text in str(error) for text in _IN_A_GRAPH):
                raise
            if in_graphs:
                raise UnsupportedByEmulation(
                    f"XLA's CPU backend, which emulates the TPU here, cannot run aten::{name} in a compiled graph; "
                    "a TPU can."
                ) from None
            raise RuntimeError(f"torch_tpu cannot compile aten::{name}: it needs the values of its input") from None
        results = operation(*here, **named)
        if isinstance(results, torch.Tensor):
            return results.to(device)
        return tuple(result.to(device) for result in results)

    return run


def _moved(value: Any) -> Any:
    return value.cpu() if isinstance(value, torch.Tensor) else value
