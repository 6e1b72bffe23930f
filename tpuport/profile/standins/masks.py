"""Selections by mask and count, which need a running count inside."""

import math
from collections.abc import Sequence
from typing import Any

import torch

from tpuport.profile.standins.operation import ON_CPU, StandIn, on_cpu
from tpuport.profile.standins.scans import cumsum

_COUNT = "gather at the running count of the mask"


def _masked_select(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    values, mask = torch.broadcast_tensors(values, mask)
    return values[mask]


def _masked_scatter(values: torch.Tensor, mask: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    values, mask = torch.broadcast_tensors(values, mask)
    taken = source.reshape(-1)[_positions(mask).clamp(min=0)].reshape(values.shape)
    return torch.where(mask, taken, values)


def _masked_scatter_in_place(values: torch.Tensor, mask: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    return values.copy_(_masked_scatter(values, mask, source))


def _masked_scatter_backward(gradient: torch.Tensor, mask: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    gradient, mask = torch.broadcast_tensors(gradient, mask)
    count = math.prod(sizes)
    # What the mask leaves out goes to one place behind the end.
    places = torch.where(mask.reshape(-1), _positions(mask), count)
    room = gradient.new_zeros(count + 1).scatter_add(0, places, gradient.reshape(-1))
    return room[:count].reshape(tuple(sizes))


def _positions(mask: torch.Tensor) -> torch.Tensor:
    return cumsum(mask.reshape(-1).to(torch.int64), 0) - 1


def _repeat_interleave(repeats: torch.Tensor, *, output_size: int | None = None) -> Any:
    if output_size is None:
        return on_cpu("repeat_interleave", in_graphs=False)(repeats)
    ends = cumsum(repeats.to(torch.int64), 0)
    return (torch.arange(output_size, device=repeats.device).unsqueeze(1) >= ends).sum(1).to(repeats.dtype)


def _repeat_each(
    values: torch.Tensor, repeats: torch.Tensor, dim: int | None = None, *, output_size: int | None = None
) -> torch.Tensor:
    if dim is None:
        values, dim = values.reshape(-1), 0
    if repeats.numel() == 1:
        repeats = repeats.reshape(1).expand(values.shape[dim])
    return values.index_select(dim, torch.repeat_interleave(repeats, output_size=output_size))


OPERATIONS = (
    StandIn("masked_select", "torch.masked_select", "indexing", _masked_select),
    StandIn("masked_scatter", "torch.masked_scatter", _COUNT, _masked_scatter),
    StandIn("masked_scatter_", "torch.masked_scatter", _COUNT, _masked_scatter_in_place),
    StandIn("masked_scatter_backward", "torch.masked_scatter", _COUNT, _masked_scatter_backward),
    StandIn("repeat_interleave.Tensor", "torch.repeat_interleave", ON_CPU, _repeat_interleave),
    StandIn("repeat_interleave.self_Tensor", "torch.repeat_interleave", ON_CPU, _repeat_each, differentiates=True),
    StandIn("_unique2", "torch.unique", ON_CPU, on_cpu("_unique2", in_graphs=False)),
    StandIn("unique_dim", "torch.unique", ON_CPU, on_cpu("unique_dim", in_graphs=False)),
    StandIn("unique_consecutive", "torch.unique_consecutive", ON_CPU, on_cpu("unique_consecutive", in_graphs=False)),
)
"""Operations of which the lowering holds a running count."""
