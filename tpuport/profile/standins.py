"""What the emulated TPU lacks and a TPU has: operations and features that are stood in for, and said so.

XLA's CPU backend aborts the process on some programs (HLO `scan`) and has no pinned memory. The operations concerned
are implemented anew on the tpu device's dispatch key: that holds in eager mode, under autograd and in torch.compile.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.library import Library

Report = Callable[[str, str], None]
"""Told what is stood in for, and how, at its first use."""

_KEY = "PrivateUse1"
_ELSEWHERE = "XLA's CPU backend, which emulates the TPU here, cannot run {}; a TPU can."
_UNSUPPORTED = (
    "logcumsumexp",
    "_embedding_bag",
    "_embedding_bag_forward_only",
    "fake_quantize_per_tensor_affine_cachemask",
)


class UnsupportedByEmulation(NotImplementedError):
    """An operation that a TPU runs and its emulation does not."""


def install(report: Report) -> Library:
    """Put every stand-in into place; they last as long as the library that is returned."""
    stand_ins = _StandIns(report)
    library = Library("aten", "IMPL")
    library.impl("cumsum", stand_ins.cumsum, _KEY)
    library.impl("cumprod", stand_ins.cumprod, _KEY)
    library.impl("cumsum_", _in_place(stand_ins.cumsum), _KEY)
    library.impl("cumprod_", _in_place(stand_ins.cumprod), _KEY)
    library.impl("masked_scatter_", _in_place(stand_ins.masked_scatter), _KEY)
    library.impl("masked_select", stand_ins.masked_select, _KEY)
    library.impl("masked_scatter", stand_ins.masked_scatter, _KEY)
    library.impl("repeat_interleave.Tensor", stand_ins.repeat_interleave, _KEY)
    for name in ("_unique2", "unique_dim", "unique_consecutive"):
        library.impl(name, stand_ins.on_cpu(name), _KEY)
    for name in _UNSUPPORTED:
        library.impl(name, _refusal(name), _KEY)
    _copy_synchronously(report)
    _ignore_pinning(report)
    _use_math_attention()
    return library


class _StandIns:
    def __init__(self, report: Report) -> None:
        self._report = report
        self._reported: set[str] = set()

    def _used(self, name: str, how: str) -> None:
        if name not in self._reported:
            self._reported.add(name)
            self._report(f"torch.{name}", how)

    def _scan(
        self,
        name: str,
        values: torch.Tensor,
        dim: int,
        dtype: torch.dtype | None,
        step: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
        neutral: Callable[[torch.Tensor], torch.Tensor],
    ) -> torch.Tensor:
        """Scan `values` along `dim` by doubling: log2(n) shifted steps."""
        self._used(name, "shifted additions" if name == "cumsum" else "shifted multiplications")
        if dtype is not None:
            values = values.to(dtype)
        elif not (values.dtype.is_floating_point or values.dtype.is_complex):
            values = values.to(torch.int64)
        if values.dim() == 0:
            return values.clone()
        length, shift = values.shape[dim], 1
        while shift < length:
            head = neutral(values.narrow(dim, 0, shift))
            values = step(values, torch.cat([head, values.narrow(dim, 0, length - shift)], dim))
            shift *= 2
        return values if shift > 1 else values.clone()

    def cumsum(self, values: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> torch.Tensor:
        return self._scan("cumsum", values, dim, dtype, torch.add, torch.zeros_like)

    def cumprod(self, values: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> torch.Tensor:
        return self._scan("cumprod", values, dim, dtype, torch.mul, torch.ones_like)

    def masked_select(self, values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        self._used("masked_select", "indexing")
        values, mask = torch.broadcast_tensors(values, mask)
        return values[mask]

    def masked_scatter(self, values: torch.Tensor, mask: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        self._used("masked_scatter", "gather at the running count of the mask")
        values, mask = torch.broadcast_tensors(values, mask)
        positions = torch.cumsum(mask.reshape(-1).to(torch.int64), 0) - 1
        taken = source.reshape(-1)[positions.clamp(min=0)].reshape(values.shape)
        return torch.where(mask, taken, values)

    def repeat_interleave(self, repeats: torch.Tensor, *, output_size: int | None = None) -> torch.Tensor:
        self._used("repeat_interleave", "a round trip to the CPU")
        return torch.repeat_interleave(repeats.cpu(), output_size=output_size).to(repeats.device)

    def on_cpu(self, name: str) -> Callable[..., Any]:
        operation = getattr(torch.ops.aten, name)

        def run(values: torch.Tensor, *arguments: Any, **keywords: Any) -> Any:
            self._used(name.strip("_").rstrip("2"), "a round trip to the CPU")
            return tuple(result.to(values.device) for result in operation(values.cpu(), *arguments, **keywords))

        return run


def _in_place(operation: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def run(values: torch.Tensor, *arguments: Any, **keywords: Any) -> torch.Tensor:
        return values.copy_(operation(values, *arguments, **keywords))

    return run


def _refusal(name: str) -> Callable[..., Any]:
    def refuse(*_arguments: Any, **_keywords: Any) -> Any:
        raise UnsupportedByEmulation(_ELSEWHERE.format(f"aten::{name}"))

    return refuse


def _copy_synchronously(report: Report) -> None:
    """Copies to the host without pinned memory can only be synchronous.

    Not done on the dispatch key: calling the kernel from Python there holds the interpreter's lock while the runtime
    compiles on another thread, which needs it.
    """
    to = torch.Tensor.to
    reported = False

    def synchronous_to(self: torch.Tensor, *arguments: Any, **keywords: Any) -> torch.Tensor:
        nonlocal reported
        if keywords.get("non_blocking") and self.device.type == "tpu":
            keywords["non_blocking"] = False
            if not reported:
                reported = True
                report("non_blocking copies from the device", "synchronous copies")
        return to(self, *arguments, **keywords)

    torch.Tensor.to = synchronous_to


def _ignore_pinning(report: Report) -> None:
    reported = False

    def pin_memory(self: torch.Tensor, _device: Any = None) -> torch.Tensor:
        nonlocal reported
        if not reported:
            reported = True
            report("pinned memory", "ordinary host memory")
        return self

    torch.Tensor.pin_memory = pin_memory


def _use_math_attention() -> None:
    """Default attention lowers to a kernel for TPUs only; with the fused ones off it takes the math path."""
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
