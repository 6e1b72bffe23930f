import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuport.profile.analyses.buckets import MOST_PADDING, MULTIPLE, propose


@pytest.mark.parametrize("sizes", [(), (5,), (5, 7), (5, 5, 7)])
def test_few_sizes_need_no_buckets(sizes: tuple[int, ...]) -> None:
    assert propose(sizes) is None


def test_sizes_that_are_close_share_a_bucket() -> None:
    found = propose((60, 61, 62, 63))
    assert found is not None
    assert (found.sizes, found.saved) == ((64,), 3)
    assert found.padding == pytest.approx(1 - (60 + 61 + 62 + 63) / 256)


def test_sizes_far_apart_stay_apart() -> None:
    assert propose((100, 200, 300)) is None


@given(st.sets(st.integers(1, 400), min_size=3, max_size=12))
def test_every_size_fits_and_padding_is_bounded(sizes: set[int]) -> None:
    found = propose(sizes)
    if found is not None:
        assert max(sizes) <= max(found.sizes)
        assert all(size % MULTIPLE == 0 for size in found.sizes)
        assert 0 <= found.padding <= MOST_PADDING
        assert found.saved == len(sizes) - len(found.sizes) > 0
