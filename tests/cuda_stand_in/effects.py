"""What code asked of the devices."""

from typing import Any

effects: list[tuple[Any, ...]] = []
"""In order: what was done, and with which values."""


def told(*effect: Any) -> None:
    effects.append(effect)


def doing(what: str, result: Any = None) -> Any:
    """A function that tells what it was asked with which simple values, and does nothing."""

    def do(*arguments: Any) -> Any:
        told(what, *(value for value in arguments if isinstance(value, bool | int | float | str)))
        return result

    return do
