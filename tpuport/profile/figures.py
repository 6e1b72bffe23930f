"""Numbers of a report: each says what it is worth."""

from dataclasses import dataclass
from enum import StrEnum

from tpuport.profile.plan import Device


class Basis(StrEnum):
    """Where a figure comes from."""

    MEASURED = "measured"
    """On the device itself, or counted exactly."""
    EMULATED = "emulated"
    """A time on XLA's CPU backend in the place of a TPU: no TPU would take that long, or that short."""
    ESTIMATED = "estimated"
    """Computed by a compiler's model, never run."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number with its unit and its basis."""

    value: float
    unit: str
    basis: Basis


def time_basis(device: Device) -> Basis:
    """Return what a duration taken on `device` is worth."""
    return Basis.EMULATED if device is Device.EMULATED_TPU else Basis.MEASURED
