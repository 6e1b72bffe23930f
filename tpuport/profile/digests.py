"""What is kept of a tensor to compare it with the same tensor of another run, and that comparison."""

import math
from dataclasses import dataclass

TENSOR_TOLERANCES = {
    "float64": 1e-6,
    "float32": 1e-3,
    "float16": 2e-2,
    "bfloat16": 1e-1,
}
"""Relative difference from which two tensors are another computation's, by the least precise type that was computed in.

A difference is taken relative to the number or to the root mean square of its tensor, whichever is larger, and it is
the root mean square of the differences that counts. Rounding grows with the depth of a model: these leave room for some
dozens of layers.
"""
_OUTLIER = 5
"""Times the tolerance by which a single number may be off: rounding turns the sign of some that are near zero."""
LOSS_TOLERANCES = {
    "float64": 1e-6,
    "float32": 1e-3,
    "float16": 5e-3,
    "bfloat16": 2e-2,
}
"""The same for losses, which are means of many numbers and round less."""
_PRECISION = ("float64", "float32", "float16", "bfloat16")


def least_precise(dtypes: set[str]) -> str:
    """Return the least precise of these floating-point types, `float32` when none is known."""
    known = [name for name in _PRECISION if name in dtypes]
    return known[-1] if known else "float32"


@dataclass(frozen=True, slots=True)
class Digest:
    """A tensor of any size, in some hundred numbers. Of a complex tensor, real and imaginary parts take turns.

    A single wrong row of many does not reach the sample, but it changes its block's sum, in which every number counts
    with a sign that looks random.
    """

    shape: tuple[int, ...]
    dtype: str
    magnitude: float
    """Root mean square of the finite numbers."""
    not_finite: int
    sample: tuple[float, ...]
    """Numbers at evenly spaced positions; all of them when they are few."""
    sums: tuple[float, ...] = ()
    """Sums of the blocks that the sampled numbers begin, each by the root of its length; none when all are sampled."""
    block: int = 1
    """Numbers in a block."""

    @property
    def is_float(self) -> bool:
        """Whether its numbers are rounded."""
        return self.dtype.startswith(("float", "bfloat", "complex"))


@dataclass(frozen=True, slots=True)
class Deviation:
    """Where two tensors differ most."""

    where: str
    """Index of a number, the range of a block, or what else differs."""
    expected: float | None
    actual: float | None
    """Both values, or both blocks' sums; None when the tensors can't be laid side by side."""
    absolute: float
    relative: float


def compare(expected: Digest, actual: Digest, tolerance: float, floor: float = 0.0) -> Deviation | None:
    """Return where `actual` leaves `expected` most, or None when it stays within `tolerance`; integers must be equal.

    `floor` is the magnitude below which differences do not count as relative to the tensor's own: what should be zero
    is nothing but rounding.
    """
    if expected.shape != actual.shape or expected.is_float != actual.is_float or expected.block != actual.block:
        what = f"{_described(expected)} became {_described(actual)}"
        return Deviation(what, None, None, math.inf, math.inf)
    if not expected.is_float:
        tolerance = floor = 0.0
    scale = max(expected.magnitude, floor)
    for ours, theirs, is_sum in ((expected.sample, actual.sample, False), (expected.sums, actual.sums, True)):
        numbered = enumerate(zip(ours, theirs, strict=True))
        deviations = [_deviation(wanted, found, scale, position) for position, (wanted, found) in numbered]
        if not deviations:
            continue
        relative, position, wanted, found = max(deviations, key=lambda item: item[0])
        spread = math.sqrt(sum(item[0] ** 2 for item in deviations) / len(deviations))
        if relative > _OUTLIER * tolerance or spread > tolerance:
            where = _block_range(expected, position) if is_sum else _index(expected, position)
            return Deviation(where, wanted, found, _absolute(wanted, found), relative)
    if expected.not_finite != actual.not_finite:
        return Deviation(
            "count of infinities and NaNs",
            expected.not_finite,
            actual.not_finite,
            abs(expected.not_finite - actual.not_finite),
            math.inf,
        )
    return None


def _deviation(wanted: float, found: float, scale: float, position: int) -> tuple[float, int, float, float]:
    if wanted == found or (math.isnan(wanted) and math.isnan(found)):
        return 0.0, position, wanted, found
    absolute = _absolute(wanted, found)
    if not math.isfinite(absolute):
        return math.inf, position, wanted, found
    return absolute / max(abs(wanted), abs(found), scale), position, wanted, found


def _absolute(wanted: float, found: float) -> float:
    difference = abs(wanted - found)
    return math.inf if math.isnan(difference) else difference


def _described(digest: Digest) -> str:
    return f"{digest.dtype}[{', '.join(map(str, digest.shape))}]"


def _index(digest: Digest, position: int) -> str:
    flat = position * digest.block
    part = ""
    if digest.dtype.startswith("complex"):
        flat, imaginary = divmod(flat, 2)
        part = " (imaginary part)" if imaginary else " (real part)"
    indices: list[int] = []
    for length in reversed(digest.shape):
        flat, index = divmod(flat, length)
        indices.append(index)
    return f"[{', '.join(map(str, reversed(indices)))}]{part}"


def _block_range(digest: Digest, position: int) -> str:
    return f"signed sum of {digest.block} numbers from {_index(digest, position)} on"
