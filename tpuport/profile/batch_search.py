"""Which batch sizes to run to find the largest one that fits into a memory, in few runs.

Memory is taken to grow with the batch size along a line between the sizes that were measured; the line says which size
to measure next, and what is measured there corrects it. It is no more than a guide: the TPU compiler lays a program out
by its sizes, so that a power of two may need more than a larger size beside it. What is told to fit was measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass

MAX_RUNS = 6
"""Sizes that are run at most."""
_TILE = 8
"""Rows that a chip keeps together: sizes of many tiles are looked for by whole ones."""
_MANY = 8 * _TILE
_STRIDE = 4
"""Where the answer itself is too large to be run here, how far the next size lies beyond the largest, as a factor."""
_CLOSE = 0.02
"""There it is enough when the largest size is this close to the line before it, as a share of what it needs."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one batch size needs, in bytes; None where that is not known."""

    size: int
    needed: int | None
    fits: bool


@dataclass(frozen=True, slots=True)
class Line:
    """Bytes by the batch size."""

    base: float
    slope: float

    def at(self, size: int) -> float:
        """Return the bytes that a size needs by this line."""
        return self.base + self.slope * size

    def reach(self, limit: float) -> int | None:
        """Return the largest size that stays within `limit`, 0 for none; None where the line does not rise."""
        return None if self.slope <= 0 else max(0, int((limit - self.base) // self.slope))


def line(points: Sequence[Measured]) -> Line | None:
    """Return the line through the two largest sizes whose need is known; None with fewer."""
    known = sorted((point.size, point.needed) for point in points if point.needed is not None)
    if len(known) < 2:
        return None
    (smaller, less), (larger, more) = known[-2:]
    slope = (more - less) / (larger - smaller)
    return Line(more - slope * larger, slope)


def next_size(points: Sequence[Measured], limit: int, first: int, ceiling: int | None) -> int | None:
    """Return the size to run next, or None when the answer is found, or nothing brings it nearer.

    `first` is the size to begin with, `ceiling` the largest that can be run on this machine, if that is known.
    """
    if not points:
        return first
    fits, over = bounds(points)
    if over == 1 or (fits is not None and over is not None and over <= fits + _grain(fits)):
        return _untried_power(points, fits)
    rising = line(points)
    if rising is None:
        wanted = 2 * first if over is None else first // 2
        return wanted if all(point.size != wanted for point in points) and _within(wanted, ceiling) else None
    reached = rising.reach(limit)
    if reached is None:
        return None
    wanted = max(_whole(reached), (fits or 0) + _grain(fits or 0), 1)
    if over is not None:
        wanted = min(wanted, _whole(over - 1))
    if _within(wanted, ceiling):
        return wanted
    largest = max(point.size for point in points)
    check = min(_STRIDE * largest, ceiling or 0)
    off = error(points)
    return check if check > largest and (off is None or off > _CLOSE) else None


def error(points: Sequence[Measured]) -> float | None:
    """Return how far the largest size is from the line through the two before it, as a share of what it needs."""
    known = sorted((point for point in points if point.needed is not None), key=lambda point: point.size)
    before = line(known[:-1])
    if before is None or not known[-1].needed:
        return None
    return abs(before.at(known[-1].size) / known[-1].needed - 1)


def bounds(points: Sequence[Measured]) -> tuple[int | None, int | None]:
    """Return the largest size that fits, and of those above it the smallest that does not."""
    fits = max((point.size for point in points if point.fits), default=None)
    return fits, min((point.size for point in points if not point.fits and point.size > (fits or 0)), default=None)


def power_of_two(size: int) -> int:
    """Return the largest power of two up to `size`, which is at least 1."""
    return 1 << (size.bit_length() - 1)


def _untried_power(points: Sequence[Measured], fits: int | None) -> int | None:
    if fits is None:
        return None
    power = power_of_two(fits)
    return power if all(point.size != power for point in points) else None


def _grain(size: int) -> int:
    return _TILE if size >= _MANY else 1


def _whole(size: int) -> int:
    return size - size % _grain(size)


def _within(size: int, ceiling: int | None) -> bool:
    return ceiling is None or size <= ceiling
