"""Fake quantization."""

import torch

from tpuport.profile.standins.operation import StandIn

_HOW = "rounding and clamping"


def _fake_quantize(
    values: torch.Tensor, scale: float | torch.Tensor, zero_point: int | torch.Tensor, low: int, high: int
) -> tuple[torch.Tensor, torch.Tensor]:
    steps = torch.round(values.float() / scale + zero_point)
    inside = (steps >= low) & (steps <= high)
    return ((steps.clamp(low, high) - zero_point) * scale).to(values.dtype), inside


def _fake_quantize_tensors(
    values: torch.Tensor,
    scale: torch.Tensor,
    zero_point: torch.Tensor,
    enabled: torch.Tensor,
    low: int,
    high: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    quantized, inside = _fake_quantize(values, scale, zero_point, low, high)
    on = enabled != 0
    return torch.where(on, quantized, values), inside | ~on


OPERATIONS = (
    StandIn("fake_quantize_per_tensor_affine_cachemask", "torch.fake_quantize_per_tensor_affine", _HOW, _fake_quantize),
    StandIn(
        "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
        "torch.fake_quantize_per_tensor_affine",
        _HOW,
        _fake_quantize_tensors,
    ),
)
"""Operations of quantization-aware training."""
