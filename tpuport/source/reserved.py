"""`x.cuda(async=True)`, from before Python 3.7 reserved the word: what such files say is read all the same."""

import io
import re
import tokenize
from collections.abc import Iterator, Sequence

ARGUMENT = re.compile(r"\basync\s*=(?!=)")
_IN_BYTES = re.compile(ARGUMENT.pattern.encode())
SAME_LENGTH = "ásync"
"""A word that Python takes, as long as the reserved one: every other character keeps its place."""

NOW = "non_blocking"
"""What PyTorch has called the argument since the word was reserved."""


def is_in(raw: bytes) -> bool:
    """Whether a source file may have such an argument."""
    return b"async" in raw and _IN_BYTES.search(raw) is not None  # the word alone is found several times as fast


def readable(source: str, name: str) -> str:
    """`source` with `name` for each argument `async` of a method `cuda`; unchanged if it has others, or none."""
    if "async" not in source or not ARGUMENT.search(source) or (name == SAME_LENGTH and name in source):
        return source
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError):
        return source
    found = list(_arguments(tokens))
    if not all(is_moved for _, is_moved in found):
        return source
    lines = source.split("\n")
    for token, _ in reversed(found):
        (row, start), (_, end) = token.start, token.end
        lines[row - 1] = lines[row - 1][:start] + name + lines[row - 1][end:]
    return "\n".join(lines)


def _arguments(tokens: Sequence[tokenize.TokenInfo]) -> Iterator[tuple[tokenize.TokenInfo, bool]]:
    """Every argument named `async`, and whether the call around it is one of a method `cuda`."""
    calls: list[bool] = []
    for index, token in enumerate(tokens):
        if token.string in ("(", "[", "{"):
            calls.append(token.string == "(" and [t.string for t in tokens[max(index - 2, 0) : index]] == [".", "cuda"])
        elif token.string in (")", "]", "}") and calls:
            calls.pop()
        elif token.string == "async" and calls and tokens[index + 1].string == "=":
            yield token, calls[-1]
