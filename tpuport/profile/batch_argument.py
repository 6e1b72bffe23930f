"""The script's own argument that sets its batch size, on the command line that tpuport was given."""

from collections.abc import Sequence

from tpuport.errors import UsageError


def batch_size(arguments: Sequence[str], name: str) -> int:
    """Return the value of `NAME VALUE` or `NAME=VALUE` among the script's arguments.

    Raises UsageError when it is not there exactly once, or is no positive integer.
    """
    values = [arguments[place][start:] for place, start in _places(arguments, name)]
    if len(values) != 1:
        raise UsageError(
            f"--largest-batch {name}: the script is given {name} {len(values)} times",
            hint=f"Give it once, with the size to begin with: tpuport profile SCRIPT … -- {name} 32",
        )
    if not values[0].isdecimal() or not int(values[0]):
        raise UsageError(
            f"--largest-batch {name}: {values[0]!r} is no batch size",
            hint="It has to be an integer of at least 1.",
        )
    return int(values[0])


def with_batch_size(arguments: Sequence[str], name: str, size: int) -> tuple[str, ...]:
    """Return the script's arguments with another batch size."""
    changed = list(arguments)
    for place, start in _places(arguments, name):
        changed[place] = changed[place][:start] + str(size)
    return tuple(changed)


def _places(arguments: Sequence[str], name: str) -> list[tuple[int, int]]:
    """Return which arguments hold a value of `name`, and where in each it begins."""
    after = [(place + 1, 0) for place, text in enumerate(arguments[:-1]) if text == name]
    return after + [(place, len(name) + 1) for place, text in enumerate(arguments) if text.startswith(f"{name}=")]
