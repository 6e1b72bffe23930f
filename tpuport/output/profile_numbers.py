"""The comparison of numbers as sentences, the same in every format."""

from collections.abc import Iterator
from dataclasses import dataclass

from tpuport.profile.analyses.numbers import Difference, Numbers, NumbersRow, Verdict

_VERDICTS = {
    Verdict.AGREES: "agrees with",
    Verdict.DIFFERS: "DIFFERS from",
    Verdict.INCOMPARABLE: "can't be compared with",
}


@dataclass(frozen=True, slots=True)
class Sentence:
    """One mode: what came of the comparison, and what has to be said of it."""

    subject: str
    verdict: str
    detail: str
    lines: tuple[str, ...]
    bad: bool


def numbers_title(numbers: Numbers) -> str:
    """Return what was compared."""
    steps = "first step" if numbers.checked_steps == 1 else f"first {numbers.checked_steps} steps"
    return f"Numbers of the {steps}"


def number_sentences(numbers: Numbers) -> Iterator[Sentence]:
    """Yield one for each comparison, and one for a CPU run that failed."""
    if numbers.reference_failure is not None:
        failure = numbers.reference_failure
        where = f"at {failure.place}: " if failure.place else ""
        hints = (failure.hint,) if failure.hint else ()
        yield Sentence("the run on the CPU in float32", "failed", f"{where}{failure.what}", hints, bad=True)
    for row in numbers.rows:
        yield Sentence(
            row.mode,
            _VERDICTS[row.verdict],
            f"{row.reference} ({_compared(row)})",
            tuple(_lines(row)),
            row.verdict is Verdict.DIFFERS,
        )


def _compared(row: NumbersRow) -> str:
    parts = [f"{row.compared} tensors, tolerance {row.tolerance:g} for {row.precision}"]
    if row.losses is not None:
        parts.append(f"{row.losses.compared} losses, tolerance {row.losses.tolerance:g}")
    if not row.parts_seen:
        parts.append("models as a whole: a compiled graph hides its parts")
    if row.unmatched and row.parts_seen:
        parts.append(f"{row.unmatched} tensors of {row.reference} without a counterpart")
    return "; ".join(parts)


def _lines(row: NumbersRow) -> Iterator[str]:
    found = [item for item in (row.forward, row.backward) if item is not None]
    for item in sorted(found, key=lambda item: item.step):
        yield _told(item)
    if row.losses is not None and not row.losses.agrees:
        off = f"by {row.losses.max_relative:.2g} at most (relative)"
        yield f"losses leave it at step {row.losses.first_difference}, {off}"


def _told(item: Difference) -> str:
    name = f" `{item.name}`" if item.name else ""
    deviation = item.deviation
    if deviation.expected is None or deviation.actual is None:
        values = deviation.where
    else:
        values = (
            f"{deviation.where} is {deviation.actual:.6g}, not {deviation.expected:.6g} "
            f"(off by {deviation.absolute:.2g}, relative {deviation.relative:.2g})"
        )
    return f"step {item.step}, {item.what}{name} of {item.module}: {values}; {item.meaning}"
