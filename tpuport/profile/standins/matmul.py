"""Grouped matrix products, which torch_tpu lowers to HLO `ragged-dot`."""

import torch

from tpuport.profile.standins.operation import StandIn


def _grouped(
    one: torch.Tensor,
    other: torch.Tensor,
    ends: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """Multiply group by group; `ends` are the ends of the groups along the dimension that is divided.

    That is the rows of `one` (2-D by 3-D), the columns of `other` (3-D by 2-D) or what is summed over (2-D by 2-D).
    """
    if ends is None:
        result = torch.bmm(one, other)
    elif one.dim() == 2 and other.dim() == 3:
        inside = _inside(ends, one.shape[0])
        parts = [torch.where(inside[group][:, None], one @ other[group], 0) for group in range(other.shape[0])]
        result = torch.stack(parts).sum(0)
    elif one.dim() == 3:
        inside = _inside(ends, other.shape[1])
        parts = [torch.where(inside[group][None, :], one[group] @ other, 0) for group in range(one.shape[0])]
        result = torch.stack(parts).sum(0)
    else:
        inside = _inside(ends, one.shape[1])
        parts = [torch.where(inside[group][None, :], one, 0) @ other for group in range(ends.shape[0])]
        result = torch.stack(parts)
    if bias is not None:
        result = result + bias
    return result if dtype is None else result.to(dtype)


def _inside(ends: torch.Tensor, length: int) -> torch.Tensor:
    """Return a mask, groups by `length`."""
    starts = torch.cat([torch.zeros_like(ends[:1]), ends[:-1]])
    order = torch.arange(length, device=ends.device)
    return (order >= starts[:, None]) & (order < ends[:, None])


OPERATIONS = (StandIn("_grouped_mm", "torch.nn.functional.grouped_mm", "a masked product a group", _grouped),)
"""Products of groups."""
