"""Whether every mode computes what a run on the CPU in float32 does, and where it first does not."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from tpuport.profile.analyses.failures import Failure, failure
from tpuport.profile.analyses.losses import LossRow, compare_losses
from tpuport.profile.digests import TENSOR_TOLERANCES, Deviation, compare, least_precise
from tpuport.profile.layout import REFERENCE
from tpuport.profile.plan import reference_plan
from tpuport.profile.records import Precision, TensorSeen
from tpuport.profile.session import Run, Session

_Key = tuple[int, str, str, str, int]
_VANISHING = 1e-4
"""Share of the median magnitude below which a gradient computed in float32 should be zero."""


class Verdict(StrEnum):
    """What a comparison came to."""

    AGREES = "agrees"
    DIFFERS = "differs"
    INCOMPARABLE = "incomparable"
    """From some place on, the two runs had other random numbers or weights."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first tensor that differs, in the order in which the reference computed them."""

    step: int
    what: str
    """`weight`, `input`, `output` or `gradient`."""
    module: str
    """Class of the model and path of the part in it."""
    name: str
    """Name of the parameter, or place among what the module takes or gives."""
    deviation: Deviation
    meaning: str
    """What follows from it, in a sentence."""
    comparable: bool
    """False when random numbers explain it, which another device draws otherwise."""


@dataclass(frozen=True, slots=True)
class NumbersRow:
    """One mode against the reference."""

    mode: str
    reference: str
    """The CPU run, or a mode when that run failed or is not comparable."""
    compared: int
    """Tensors laid side by side."""
    unmatched: int
    """Tensors of the reference that the mode does not have: what is inside a compiled graph is not seen."""
    parts_seen: bool
    """Whether the parts of the models were seen, not only the models as a whole."""
    precision: str
    """The least precise type that the mode computed in."""
    tolerance: float
    """Relative."""
    losses: LossRow | None
    forward: Difference | None
    """The first weight, input or output that differs."""
    backward: Difference | None
    """The first gradient that differs, in the order of the backward pass."""

    @property
    def verdict(self) -> Verdict:
        """What the row comes to."""
        found = [item for item in (self.forward, self.backward) if item is not None]
        if any(not item.comparable for item in found):
            return Verdict.INCOMPARABLE
        if found or (self.losses is not None and not self.losses.agrees):
            return Verdict.DIFFERS
        return Verdict.AGREES


@dataclass(frozen=True, slots=True)
class Numbers:
    """All comparisons of tensors; none without `--check-numbers`."""

    checked_steps: int
    reference_failure: Failure | None
    rows: tuple[NumbersRow, ...]


def analyse_numbers(session: Session) -> Numbers:
    """Compare each mode with the CPU in float32; and with the first mode, where the CPU can't be compared with."""
    checked = session.plan.checked_steps
    if not checked:
        return Numbers(0, None, ())
    rows: list[NumbersRow] = []
    failed: Failure | None = Failure("it did not run", None)
    if session.reference is not None:
        failed = failure(reference_plan(session.plan), session.reference)
        if session.reference.records.of(TensorSeen):
            rows = [_row(run, session.reference, REFERENCE) for run in session.runs]
    if len(rows) != len(session.runs) or any(row.verdict is Verdict.INCOMPARABLE for row in rows):
        first, *others = session.runs
        rows += [_row(run, first, first.mode.value) for run in others]
    return Numbers(checked, failed, tuple(rows))


def _row(run: Run, reference: Run, name: str) -> NumbersRow:
    wanted, found = _by_key(reference), _by_key(run)
    precision = least_precise(set(_dtypes(run)) | set(_dtypes(reference)))
    tolerance = TENSOR_TOLERANCES[precision]
    magnitudes = _magnitudes(wanted.values())
    deviations: dict[_Key, Deviation] = {}
    for key, ours in wanted.items():
        if theirs := found.get(key):
            floor = _floor(ours, magnitudes.get((ours.step, ours.what), 0.0), tolerance)
            if deviation := compare(ours.digest, theirs.digest, tolerance, floor):
                deviations[key] = deviation
    forward = backward = None
    for key, deviation in deviations.items():
        seen = wanted[key]
        if seen.what == "gradient":
            backward = backward or _difference(seen, deviation, run, deviations, after=forward)
        elif seen.what != "weight" or not seen.step:
            forward = forward or _difference(seen, deviation, run, deviations, after=backward)
    return NumbersRow(
        mode=run.mode.value,
        reference=name,
        compared=len(wanted.keys() & found.keys()),
        unmatched=len(wanted.keys() - found.keys()),
        parts_seen=not run.mode.compiles,
        precision=precision,
        tolerance=tolerance,
        losses=compare_losses(run, reference),
        forward=forward,
        backward=backward,
    )


def _floor(seen: TensorSeen, median: float, tolerance: float) -> float:
    """Return the magnitude below which a tensor may be rounding of what should be zero; `median` is that of its kind.

    Gradients often should be: that of a bias before a normalization is one, and it sums up many roundings.
    """
    if seen.what != "gradient":
        return tolerance * median
    vanishes = seen.digest.magnitude < _VANISHING * median
    return median * (100 * tolerance if vanishes else max(0.05, 10 * tolerance))


def _by_key(run: Run) -> dict[_Key, TensorSeen]:
    return {(seen.step, seen.what, seen.module, seen.name, seen.number): seen for seen in run.records.of(TensorSeen)}


def _dtypes(run: Run) -> Iterable[str]:
    for record in run.records.of(Precision):
        yield from record.dtypes
    for seen in run.records.of(TensorSeen):
        if seen.what == "output":
            yield seen.digest.dtype


def _magnitudes(seen: Iterable[TensorSeen]) -> dict[tuple[int, str], float]:
    by_kind: dict[tuple[int, str], list[float]] = {}
    for item in seen:
        if item.digest.is_float:
            by_kind.setdefault((item.step, item.what), []).append(item.digest.magnitude)
    return {kind: statistics.median(values) for kind, values in by_kind.items()}


def _difference(
    seen: TensorSeen, deviation: Deviation, run: Run, deviations: dict[_Key, Deviation], after: Difference | None
) -> Difference:
    """Say what a deviation means; `after` is the first difference of the other pass, if that came before."""
    comparable, meaning = True, _meaning(seen, run)
    if after is not None:
        comparable, meaning = after.comparable, f"after the difference in {after.module}, which may be its cause"
    elif seen.drawn or seen.what == "weight":
        comparable = False
    elif seen.step and any(step == seen.step and what == "weight" for step, what, *_ in deviations):
        comparable = False
        meaning = (
            "by then weights differ, although the gradients agreed: an optimizer that divides by the size of the "
            "gradients makes whole steps of what is rounding only; nothing after it can be compared"
        )
    return Difference(seen.step, seen.what, seen.module, seen.name, deviation, meaning, comparable)


def _meaning(seen: TensorSeen, run: Run) -> str:
    model, _, part = seen.module.partition(".")
    if seen.what == "weight":
        return "the models differ before they compute anything, as they do when weights are drawn on the device"
    if seen.drawn:
        return (
            "random numbers were drawn on the way there, and no two kinds of device draw the same: nothing after it "
            "can be compared; to compare further, set dropout to 0 and draw weights and data on the CPU"
        )
    if seen.what == "gradient":
        return f"the forward pass agrees: the backward pass of {seen.module}, or of what comes after it, differs"
    if seen.what == "input" and not part:
        return f"the script feeds {model} other numbers"
    if seen.what == "input":
        return f"it is made by the code of {seen.module.rpartition('.')[0]} around its parts, which agree until then"
    if run.mode.compiles:
        return "its inputs agree; a compiled graph does not show in which part: an eager mode does"
    return f"its inputs agree: {seen.module} computes something else"
