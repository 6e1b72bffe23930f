"""Sums, means and maxima over bags of rows and over segments."""

import torch

from tpuport.profile.standins.operation import ON_CPU, StandIn, on_cpu

_SUM, _MEAN, _MAX = range(3)
_HOW = "gather, and additions by index"
_Bags = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def _embedding_bag(
    weight: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: torch.Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> _Bags:
    """Return what `aten::_embedding_bag` does, in the shapes that it has on accelerators: see torch's meta function."""
    del scale_grad_by_freq, sparse
    starts = offsets[:-1] if include_last_offset else offsets
    count, width = starts.shape[0], weight.shape[1]
    order = torch.arange(indices.shape[0], device=indices.device, dtype=offsets.dtype)
    bag = ((order[:, None] >= starts[None, :]).sum(1) - 1).to(indices.dtype)
    kept = indices != padding_idx
    sizes = torch.zeros(offsets.shape[0], dtype=offsets.dtype, device=offsets.device)
    sizes = sizes.index_add(0, bag, kept.to(offsets.dtype))
    rows = weight[indices]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    if mode != _MAX:
        total = weight.new_zeros(count, width).index_add(0, bag, torch.where(kept[:, None], rows, 0))
        if mode == _MEAN:
            total = total / sizes[:count].clamp(min=1)[:, None]
        return total, bag, sizes, indices.new_empty(0)
    spread = bag[:, None].expand(-1, width)
    low = torch.where(kept[:, None], rows, -torch.inf)
    highest = weight.new_full((count, width), -torch.inf).scatter_reduce(0, spread, low, "amax")
    # Of several rows that are as high, the first one counts.
    behind = order.shape[0]
    first = torch.where((rows == highest[bag]) & kept[:, None], order[:, None].to(indices.dtype), behind)
    first = indices.new_full((count, width), behind).scatter_reduce(0, spread, first, "amin")
    empty = sizes[:count][:, None] == 0
    chosen = torch.cat([indices, indices.new_zeros(1)])[first]
    return torch.where(empty, 0, highest), bag, sizes, torch.where(empty, 0, chosen)


def _dense_backward(
    gradient: torch.Tensor,
    indices: torch.Tensor,
    bag: torch.Tensor,
    sizes: torch.Tensor,
    chosen: torch.Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: torch.Tensor | None,
    padding_idx: int = -1,
) -> torch.Tensor:
    room = gradient.new_zeros(num_weights, gradient.shape[1])
    if mode == _MAX:
        full = sizes[: gradient.shape[0]][:, None] > 0
        return room.scatter_add(0, chosen, torch.where(full, gradient, 0))
    rows = gradient[bag]
    if mode == _MEAN:
        rows = rows / sizes[bag].clamp(min=1)[:, None]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    if scale_grad_by_freq:
        counts = indices.new_zeros(num_weights).index_add(0, indices, torch.ones_like(indices))
        rows = rows / counts[indices][:, None]
    return room.index_add(0, indices, torch.where((indices != padding_idx)[:, None], rows, 0))


def _backward(
    gradient: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    bag: torch.Tensor,
    sizes: torch.Tensor,
    chosen: torch.Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: torch.Tensor | None,
    padding_idx: int = -1,
) -> torch.Tensor:
    del offsets, sparse
    return _dense_backward(
        gradient, indices, bag, sizes, chosen, num_weights, scale_grad_by_freq, mode, per_sample_weights, padding_idx
    )


def _per_sample_weights_backward(
    gradient: torch.Tensor,
    weight: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    bag: torch.Tensor,
    mode: int,
    padding_idx: int = -1,
) -> torch.Tensor:
    del offsets, mode
    return torch.where(indices != padding_idx, (gradient[bag] * weight[indices]).sum(1), 0)


OPERATIONS = (
    StandIn("_embedding_bag", "torch.nn.EmbeddingBag", _HOW, _embedding_bag),
    StandIn("_embedding_bag_forward_only", "torch.nn.EmbeddingBag", _HOW, _embedding_bag),
    # torch_tpu's own takes `chosen` for places among the indices, as its own forward gives them.
    StandIn("_embedding_bag_backward", "torch.nn.EmbeddingBag", _HOW, _backward),
    StandIn("_embedding_bag_dense_backward", "torch.nn.EmbeddingBag", _HOW, _dense_backward),
    StandIn("_embedding_bag_per_sample_weights_backward", "torch.nn.EmbeddingBag", _HOW, _per_sample_weights_backward),
    StandIn("segment_reduce", "torch.segment_reduce", ON_CPU, on_cpu("segment_reduce", in_graphs=True)),
    StandIn(
        "_segment_reduce_backward",
        "torch.segment_reduce",
        ON_CPU,
        on_cpu("_segment_reduce_backward", in_graphs=True),
    ),
)
"""Operations over groups of rows."""
