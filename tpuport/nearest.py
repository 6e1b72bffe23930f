"""The valid name that a misspelt one was meant to be, worded one way in every message."""

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, valid: Iterable[str]) -> str:
    """Return `; did you mean NAME?` with the valid name nearest to `word`; nothing when none is near.

    Case, whether words are joined by `-` or `_`, and the dashes before an option make no difference.
    """
    names = {_form(name): name for name in valid}
    near = difflib.get_close_matches(_form(word), names, 1)
    return f"; did you mean {names[near[0]]}?" if near else ""


def _form(word: str) -> str:
    return word.lower().replace("_", "-").lstrip("-")
