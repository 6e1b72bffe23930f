"""Numbers of the profile report as they read best."""

from tpuport.profile.figures import Figure

NONE = "–"
_ROUNDS_UP = 999.5
"""From here on three digits come to 1000, which the next unit shows better."""


def scale(seconds: float) -> tuple[float, str]:
    """Return the factor and the unit in which a duration reads best."""
    units = ((1e9, "ns"), (1e6, "µs"), (1e3, "ms"))
    return next(((factor, unit) for factor, unit in units if 0 < seconds * factor < _ROUNDS_UP), (1.0, "s"))


def duration(seconds: float) -> str:
    """Return a duration with its unit."""
    factor, unit = scale(seconds)
    return f"{_digits(seconds * factor)} {unit}"


def duration_range(lowest: float, highest: float) -> str:
    """Return two durations, with one unit where both have the same."""
    low, high = duration(lowest), duration(highest)
    number_, _, unit = low.partition(" ")
    return f"{number_ if high.endswith(f' {unit}') else low} – {high}"


def number(figure: Figure | None) -> str:
    """Return a bare figure, or a dash."""
    return NONE if figure is None else f"{figure.value:g}"


def seconds(figure: Figure | None) -> str:
    """Return a figure in seconds, or a dash."""
    return NONE if figure is None else duration(figure.value)


def size(count: float) -> str:
    """Return a number of bytes with its unit, in powers of 1000 as bandwidths are given."""
    return _prefixed(count, "B")


def memory(count: float) -> str:
    """Return a number of bytes with its unit, in powers of 1024 as memories are sold."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{_digits(count)} {unit}"
        count /= 1024
    return f"{_digits(count)} GiB"


def amount(count: float, unit: str = "") -> str:
    """Return a large count, such as of FLOP or cycles."""
    return _prefixed(count, unit).rstrip()


def plain(count: float) -> str:
    """Return a count that may have a fraction, as short as it reads well."""
    return f"{round(count, 1 if count < 100 else 0):g}"


def percent(share: float) -> str:
    """Return a share of 1 as a percentage."""
    return f"{share:.1%}"


def change(ratio: float) -> str:
    """Return how much more or less `ratio` times as much is, as a percentage."""
    text = f"{ratio - 1:+.0%}"
    return "0%" if text[1:] == "0%" else text


def _prefixed(count: float, unit: str) -> str:
    for prefix in ("", "k", "M", "G", "T"):
        if abs(count) < _ROUNDS_UP:
            return f"{_digits(count)} {prefix}{unit}"
        count /= 1000
    return f"{_digits(count)} P{unit}"


def _digits(value: float) -> str:
    """Return three digits, or all before the point, without an exponent."""
    return f"{value:.3g}" if abs(value) < _ROUNDS_UP else f"{value:.0f}"
