"""The scalars that backward() starts from, step by step."""

import functools
from collections.abc import Callable
from typing import Any

import torch

# Taken before the script runs, which may put a method of its own in its place.
_item = torch.Tensor.item


class Losses:
    """Remembers each scalar without synchronising; they are read when the device is idle anyway."""

    def __init__(self) -> None:
        self._pending: list[torch.Tensor] = []
        self.backwards = 0
        """Times that backward() was called."""
        self.before_first: Callable[[], None] | None = None
        """Called once, before the first of them."""

    def install(self) -> None:
        """Watch torch.autograd.backward, which Tensor.backward() calls too."""
        backward = torch.autograd.backward

        @functools.wraps(backward)
        def recorded(tensors: Any, *arguments: Any, **keywords: Any) -> Any:
            self.backwards += 1
            if self.backwards == 1 and self.before_first is not None:
                self.before_first()
            first = tensors[0] if isinstance(tensors, tuple | list) and tensors else tensors
            if isinstance(first, torch.Tensor) and first.numel() == 1:
                self._pending.append(first.detach())
            return backward(tensors, *arguments, **keywords)

        torch.autograd.backward = recorded

    def take(self) -> tuple[float, ...]:
        """Return and forget the losses since the last call; waits for the device."""
        taken = tuple(float(_item(loss)) for loss in self._pending if not loss.is_complex())
        self._pending.clear()
        return taken
