"""How the profile report writes figures."""

import pytest

from tpuport.output.profile_units import amount, duration, memory, size


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (1.5e-9, "1.5 ns"),
        (999.4e-6, "999 µs"),
        (999.6e-6, "1 ms"),
        (0.9996, "1 s"),
        (72.4, "72.4 s"),
        (1234.5, "1234 s"),
    ],
)
def test_durations_have_three_digits_and_no_exponent(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_what_rounds_up_to_a_thousand_takes_the_next_unit() -> None:
    assert [amount(999.7e3), size(999_600)] == ["1 M", "1 MB"]


def test_memory_between_1000_and_1024_has_no_exponent() -> None:
    assert [memory(1010 * 1024), memory(1010), memory(5000 * 2**30)] == ["1010 KiB", "1010 B", "5000 GiB"]
