"""The largest batch that fits each chip, in words that every format of the report shares."""

from collections.abc import Iterator

from tpuport.output.profile_units import memory, percent, size
from tpuport.profile.analyses.batches import Batches, BatchPoint, BatchRow
from tpuport.profile.batch_search import power_of_two
from tpuport.profile.figures import Figure


def batches_title(batches: Batches) -> str:
    """Return the heading; empty where the largest batch was not asked for."""
    return f"The largest batch ({batches.argument})" if batches.rows else ""


def batch_lines(batches: Batches) -> list[str]:
    """Return what was found for each chip, and how it is to be read."""
    lines = [f"{row.chip}, {row.mode.value}: {_verdict(row)}" for row in batches.rows]
    lines += [f"{row.chip}: {_points(row)}" for row in batches.rows]
    return [*lines, _READING] if lines else []


_READING = (
    "Counted is the most at any time of a step: the TPU compiler's peak of a program (estimated), and what lies beside "
    "it, such as weights, optimizer state and activations kept (followed in the run, without the chip's padding), "
    "against the HBM that the compiler leaves to programs. What the runtime holds itself and gaps between buffers come "
    "on top: keep some room."
)


def _verdict(row: BatchRow) -> str:
    return " ".join(_sentences(row))


def _sentences(row: BatchRow) -> Iterator[str]:
    by_size = {point.size: point for point in row.points}
    problem = next((point for point in row.points if point.problem), None)
    if row.largest is not None and row.too_large is not None:
        yield f"{row.largest} fits ({_need(by_size[row.largest], row)}), {row.too_large} does not."
        if row.too_large > row.largest + 8:
            yield "What lies between was not tried."
    elif row.largest is not None:
        yield f"{row.largest} fits ({_need(by_size[row.largest], row)})."
        yield from _estimate(row, problem)
    elif row.too_large is not None:
        yield f"{row.too_large} does not fit ({_need(by_size[row.too_large], row)})."
        if row.too_large > 1:
            yield from _estimate(row, problem)
    if row.largest is not None and (power := by_size.get(power_of_two(row.largest))) and power.size != row.largest:
        how = "fits" if power.fits else "does not fit: the compiler lays out its programs otherwise"
        yield f"The power of two below it, {power.size}, {how} ({_need(power, row)})."
    if problem is not None:
        yield f"Size {problem.size} could not be looked at: {problem.problem}."


def _estimate(row: BatchRow, problem: BatchPoint | None) -> Iterator[str]:
    if row.estimate is None or row.per_sample is None:
        sizes = [point.size for point in row.points if point.needed is not None]
        if len(sizes) > 1:
            yield (
                f"Memory does not grow from {sizes[-2]} to {sizes[-1]}, so no largest one can be told: does the "
                "argument set the batch, and are there that many samples?"
            )
        return
    off = "" if row.error is None else f"; the largest size run was {percent(row.error)} off the line before it"
    yield f"By estimate {row.estimate} is the largest: {size(row.per_sample.value)} a sample{off}."
    if problem is None:
        yield "It was not run: that takes more memory, time or runs than there were here."


def _need(point: BatchPoint, row: BatchRow) -> str:
    return f"{_memory(point.needed)} of {memory(row.limit.value)}"


def _points(row: BatchRow) -> str:
    known = [point for point in row.points if point.needed is not None]
    parts = (f"{point.size}: {_memory(point.needed)}, {_memory(point.beside)} of it beside" for point in known)
    return f"run and compiled at {'; '.join(parts)}" if known else "no size was run and compiled"


def _memory(figure: Figure | None) -> str:
    return "" if figure is None else memory(figure.value)
