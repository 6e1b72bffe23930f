"""The comparisons of losses and of other numbers as sentences, the same in every format."""

from collections.abc import Iterator
from dataclasses import dataclass

from tpuport.profile.analyses import Report
from tpuport.profile.analyses.losses import LossRow
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


def loss_sentences(report: Report) -> Iterator[Sentence]:
    """Yield one for each mode that has losses to compare with those of another."""
    reference = report.losses.reference
    for row in report.losses.rows:
        detail = f"{row.compared} compared, largest difference {row.max_absolute:.2g}, relative {row.max_relative:.2g}"
        if row.agrees:
            yield Sentence(row.mode.value, "agrees with", f"{reference} ({detail})", (), bad=False)
        else:
            where = f"{reference} at step {row.first_difference} ({detail})"
            yield Sentence(row.mode.value, "leaves", f"{where}: {_meaning(row)}", (), bad=True)


def losses_unknown(report: Report) -> str:
    """Return why no losses were compared; empty where they were, or fewer than two modes ran well."""
    if report.losses.rows or sum(row.failure is None for row in report.modes.rows) < 2:
        return ""
    if report.losses.reference is None:
        return "none seen (no backward() was called), so the modes' results were not compared."
    return f"only {report.losses.reference.value} has any, so the modes' results were not compared."


def _meaning(row: LossRow) -> str:
    """Return what losses that differ mean for the mode that has them."""
    if row.grown_from is None:
        return "what this mode gains is another computation's."
    return (
        f"it has grown from {row.grown_from:.1g}, as rounding does in training that amplifies it (a GAN, a large "
        "learning rate). --check-numbers tells it from an error: it compares the parts of the first steps with the CPU."
    )


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
