"""The script computed in float32 throughout: half precision becomes float32, and autocast stays off."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_HALF = frozenset({torch.float16, torch.bfloat16})
_HALF_TYPES = frozenset({"torch.HalfTensor", "torch.BFloat16Tensor"})
_CASTS = frozenset({torch.Tensor.half, torch.Tensor.bfloat16})


class _Float32(TorchFunctionMode):  # type: ignore[misc]
    def __torch_function__(
        self, function: Any, _types: Any, arguments: tuple[Any, ...] = (), keywords: dict[str, Any] | None = None
    ) -> Any:
        if function in _CASTS:
            return arguments[0].float()
        if function is torch.Tensor.view:
            # With a type, it reads the same bytes in another way.
            return function(*arguments, **(keywords or {}))
        given = {name: _widened(value) for name, value in (keywords or {}).items()}
        return function(*map(_widened, arguments), **given)


def _widened(value: Any) -> Any:
    if isinstance(value, torch.dtype):
        return torch.float32 if value in _HALF else value
    return "torch.FloatTensor" if isinstance(value, str) and value in _HALF_TYPES else value


@contextmanager
def float32_throughout() -> Iterator[None]:
    """Compute in float32 where the code inside asks for half precision; doubles stay as they are."""
    initialise, set_default = torch.autocast.__init__, torch.set_default_dtype

    @functools.wraps(initialise)
    def disabled(self: Any, device_type: str, dtype: Any = None, *_given: Any, **_named: Any) -> None:
        initialise(self, device_type, dtype, enabled=False)

    torch.autocast.__init__ = disabled
    torch.set_default_dtype = lambda dtype: set_default(_widened(dtype))
    try:
        with _Float32():
            yield
    finally:
        torch.autocast.__init__, torch.set_default_dtype = initialise, set_default
