import math
from pathlib import Path

import pytest

from tests.profile.command import make_session
from tpuport.profile.analyses.losses import Losses, analyse_losses
from tpuport.profile.plan import Mode
from tpuport.profile.records import Phase, Step
from tpuport.profile.session import load


def steps(*losses: float) -> list[Step]:
    return [Step(index, Phase.TIMED, 0.1, 0, (loss,)) for index, loss in enumerate(losses)]


def analysed(folder: Path, eager: list[Step], compiled: list[Step]) -> Losses:
    return analyse_losses(load(make_session(folder / "s", {Mode.EAGER: eager, Mode.COMPILED: compiled})))


def test_equal_losses_agree_over_the_common_steps(tmp_path: Path) -> None:
    losses = analysed(tmp_path, steps(3.0, 2.0, 1.0), steps(3.0, 2.0))
    assert losses.agree
    assert (losses.rows[0].compared, losses.rows[0].max_absolute) == (2, 0.0)


@pytest.mark.parametrize(("near_zero", "agrees"), [((1.1e-6, 1e-8), True), ((1e-3, 0.0), False), ((1e-6, 1e-3), False)])
def test_losses_that_cross_zero_are_compared_by_their_usual_size(
    tmp_path: Path, near_zero: tuple[float, float], agrees: bool
) -> None:
    other = steps(0.5, 0.2, near_zero[0], -0.3, near_zero[1], -0.4)
    assert analysed(tmp_path, steps(0.5, 0.2, 1e-6, -0.3, 0.0, -0.4), other).agree is agrees


def test_the_first_step_that_differs_is_named(tmp_path: Path) -> None:
    (row,) = analysed(tmp_path, steps(4.0, 4.0, 4.0), steps(4.0, 5.0, 4.0)).rows
    assert not row.agrees
    assert (row.first_difference, row.max_absolute, row.max_relative) == (1, 1.0, 0.2)


@pytest.mark.parametrize(
    ("found", "grown"),
    [
        ((1.0, 1 + 1e-7, 1 + 2e-5, 1 + 3e-4, 1 + 5e-3, 2.0), True),
        ((1.0, 1.0, 1.0, 1.0, 1 + 5e-3, 1.0), False),
        ((1.0, 1 + 1e-7, 1 + 1e-7, 1 + 2e-7, 1 + 5e-3, 1.0), False),
        ((1.0, 1 + 4e-4, 1 + 5e-4, 1 + 5e-4, 1 + 5e-3, 1.0), False),
    ],
    ids=["rounding that grows", "at once", "a jump out of rounding", "more than rounding from the start"],
)
def test_a_difference_that_grows_out_of_rounding_is_told_from_one_that_comes_at_once(
    tmp_path: Path, found: tuple[float, ...], grown: bool
) -> None:
    (row,) = analysed(tmp_path, steps(*(1.0 for _ in found)), steps(*found)).rows
    assert row.first_difference == 4
    assert (row.grown_from is not None, row.is_comparable) == (grown, grown)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_losses_that_are_no_numbers_in_both_agree(tmp_path: Path, value: float) -> None:
    assert analysed(tmp_path, steps(value), steps(value)).agree


def test_a_loss_that_is_no_number_in_one_mode_differs(tmp_path: Path) -> None:
    (row,) = analysed(tmp_path, steps(1.0), steps(math.nan)).rows
    assert (row.first_difference, row.max_absolute) == (0, math.inf)


def test_without_losses_nothing_is_compared(tmp_path: Path) -> None:
    losses = analysed(tmp_path, [], [])
    assert (losses.reference, losses.rows) == (None, ())
