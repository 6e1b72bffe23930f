"""Sizes to pad inputs to, so that few programs have to be compiled."""

from collections.abc import Collection
from dataclasses import dataclass

LEAST_SIZES = 3
"""Below this many different sizes there is nothing to gain."""
MOST_PADDING = 0.125
"""Share of the padded inputs that may be padding."""
MULTIPLE = 8
"""Rows of a TPU's tile (float32): sizes in between are padded by the device anyway."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """Sizes to pad to. The padding is that of the sizes seen, each taken to be equally frequent."""

    sizes: tuple[int, ...]
    padding: float
    """Share of the padded inputs that is padding, from 0 to 1."""
    saved: int
    """Compilations saved."""


def propose(seen: Collection[int]) -> Buckets | None:
    """Return the fewest buckets that keep padding low; None when they would save nothing."""
    sizes = sorted(set(seen))
    if len(sizes) < LEAST_SIZES:
        return None
    for count in range(1, len(sizes)):
        buckets = _best(sizes, count)
        padded = sum(min(bucket for bucket in buckets if bucket >= size) for size in sizes)
        padding = 1 - sum(sizes) / padded
        saved = len(sizes) - len(buckets)
        if padding <= MOST_PADDING and saved:
            return Buckets(buckets, padding, saved)
    return None


def _best(sizes: list[int], count: int) -> tuple[int, ...]:
    """Return at most `count` buckets that take every size with the least padding."""
    rounded = [-(-size // MULTIPLE) * MULTIPLE for size in sizes]
    # cheapest[end]: total of the padded sizes before `end`, and the buckets they go to.
    cheapest: list[tuple[int, tuple[int, ...]] | None] = [(0, ()), *[None] * len(sizes)]
    for _ in range(count):
        following = list(cheapest)
        for end in range(1, len(sizes) + 1):
            for start in range(end):
                before = cheapest[start]
                if before is None:
                    continue
                total = before[0] + rounded[end - 1] * (end - start)
                found = following[end]
                if found is None or total < found[0]:
                    following[end] = total, (*before[1], rounded[end - 1])
        cheapest = following
    best = cheapest[-1]
    return tuple(dict.fromkeys(best[1])) if best else ()
