"""Running sums and the like, by doubling: log2(n) shifted steps along the dimension."""

from collections.abc import Callable

import torch

from tpuport.profile.standins.operation import StandIn

_Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
_SUM, _PRODUCT = "shifted additions", "shifted multiplications"


def _scan(values: torch.Tensor, dim: int, dtype: torch.dtype | None, step: _Step, neutral: float) -> torch.Tensor:
    if dtype is not None:
        values = values.to(dtype)
    elif not (values.dtype.is_floating_point or values.dtype.is_complex):
        values = values.to(torch.int64)
    if values.dim() == 0:
        return values.clone()
    length, shift = values.shape[dim], 1
    while shift < length:
        head = torch.full_like(values.narrow(dim, 0, shift), neutral)
        values = step(values, torch.cat([head, values.narrow(dim, 0, length - shift)], dim))
        shift *= 2
    return values if shift > 1 else values.clone()


def cumsum(values: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Stand in for torch.cumsum."""
    return _scan(values, dim, dtype, torch.add, 0)


def _cumprod(values: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    return _scan(values, dim, dtype, torch.mul, 1)


def _logcumsumexp(values: torch.Tensor, dim: int) -> torch.Tensor:
    return _scan(values, dim, None, _log_add_exp, -torch.inf)


def _log_add_exp(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    # torch_tpu has no kernel for logaddexp.
    high, low = torch.maximum(one, other), torch.minimum(one, other)
    return torch.where(high.isinf(), high, high + torch.log1p(torch.exp(low - high)))


def _cumsum_in_place(values: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    return values.copy_(cumsum(values, dim, dtype=dtype))


def _cumprod_in_place(values: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    return values.copy_(_cumprod(values, dim, dtype=dtype))


OPERATIONS = (
    StandIn("cumsum", "torch.cumsum", _SUM, cumsum),
    StandIn("cumsum_", "torch.cumsum", _SUM, _cumsum_in_place),
    StandIn("cumprod", "torch.cumprod", _PRODUCT, _cumprod),
    StandIn("cumprod_", "torch.cumprod", _PRODUCT, _cumprod_in_place),
    StandIn("logcumsumexp", "torch.logcumsumexp", "shifted logarithms of sums", _logcumsumexp),
)
"""Operations that torch_tpu lowers to HLO `scan` as such."""
