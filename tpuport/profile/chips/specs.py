"""The chips that libtpu compiles for, and their published figures.

Peak bf16 rate, memory and devices of a chip are those that torch_tpu 0.2.0 lists (torch_tpu._internal.utils.hardware),
memory bandwidth those of https://cloud.google.com/tpu/docs/{v4,v5e,v5p,v6e,tpu7x}. The clock is derived, not
published: a matrix unit's cell does one multiplication and one addition a cycle. A core's vector unit has 8 × 128 lanes
of four arithmetic units (https://jax-ml.github.io/scaling-book/tpus); v4 and v5p run two cores as one device. The HBM
that a program may use is what libtpu 0.0.52 says when it refuses a larger one; on v4 it counts one core's half.
"""

from dataclasses import dataclass
from enum import StrEnum

GIB = 2**30


class ChipName(StrEnum):
    """A chip, as `--chip` names it."""

    V4 = "v4"
    V5E = "v5e"
    V5P = "v5p"
    V6E = "v6e"
    TPU7X = "tpu7x"


@dataclass(frozen=True, slots=True)
class Chip:
    """One kind of chip. A program runs on one device: a whole chip, or on tpu7x half of one."""

    name: ChipName
    topology: str
    """What libtpu calls the smallest host of such chips."""
    devices: int
    """Devices of one chip."""
    chip_flops: float
    """Peak bf16 rate of the chip, in FLOP/s."""
    chip_memory: int
    """HBM of the chip, in bytes."""
    usable: int
    """HBM of one device that the TPU compiler leaves to a program, in bytes: it refuses what needs more."""
    chip_bandwidth: float
    """HBM bandwidth of the chip, in bytes/s."""
    cells: int
    """Multiply-add cells in the matrix units of one device."""
    cores: int
    """Cores of one device, each with a vector unit."""

    @property
    def flops(self) -> float:
        """Peak bf16 rate of one device, in FLOP/s."""
        return self.chip_flops / self.devices

    @property
    def memory(self) -> int:
        """HBM of one device, in bytes."""
        return self.chip_memory // self.devices

    @property
    def bandwidth(self) -> float:
        """HBM bandwidth of one device, in bytes/s."""
        return self.chip_bandwidth / self.devices

    @property
    def clock(self) -> float:
        """Cycles a second, derived from the peak rate."""
        return self.flops / (2 * self.cells)

    @property
    def vector_rate(self) -> int:
        """Vector operations a cycle of one device."""
        return self.cores * 8 * 128 * 4


CHIPS: dict[str, Chip] = {
    chip.name.value: chip
    for chip in (
        Chip(ChipName.V4, "v4:2x2x1", 1, 275e12, 32 * GIB, int(15.25 * GIB), 1.2e12, 8 * 128**2, 2),
        Chip(ChipName.V5E, "v5e:2x2", 1, 197e12, 16 * GIB, int(15.75 * GIB), 0.819e12, 4 * 128**2, 1),
        Chip(ChipName.V5P, "v5p:2x2x1", 1, 459e12, 95 * GIB, int(95.73 * GIB), 2.765e12, 8 * 128**2, 2),
        Chip(ChipName.V6E, "v6e:2x2", 1, 918e12, 32 * GIB, int(31.24 * GIB), 1.64e12, 4 * 256**2, 1),
        Chip(ChipName.TPU7X, "tpu7x:2x2x1", 2, 2307e12, 192 * GIB, int(94.74 * GIB), 7.38e12, 4 * 256**2, 1),
    )
}
"""By the name that `--chip` takes."""
