"""Unified diffs that `git apply` and `patch -p1` take, in each file's own bytes."""

import difflib
from collections.abc import Iterator

from tpuport.source.text import lines


def unified(name: str, old: bytes, new: bytes) -> bytes:
    """The diff of one file, `name` being its path with forward slashes below the directory to apply it in.

    Only `\\n` ends a line, as for git: a carriage return is content.
    """
    return "".join(_lines(name, old, new)).encode("latin-1")


def _lines(name: str, old: bytes, new: bytes) -> Iterator[str]:
    diff = difflib.unified_diff(_split(old), _split(new), _header("a/" + name), _header("b/" + name))
    for number, line in enumerate(diff):
        # difflib ends its own three kinds of header lines; a content line without an end is a file's last.
        if line.endswith("\n"):
            yield line
        else:
            assert number > 2, "headers end in a newline"
            yield line + "\n\\ No newline at end of file\n"


def _split(content: bytes) -> list[str]:
    """Lines with their ends; latin-1 carries every byte through unchanged."""
    return lines(content.decode("latin-1"))


def _header(name: str) -> str:
    """A name as git writes it: quoted for control characters and quotes, with a tab behind it for spaces."""
    raw = name.encode("utf-8", "surrogateescape")
    if any(byte < 0x20 or byte in b'"\\' or byte == 0x7F for byte in raw):
        return (
            '"'
            + "".join(_ESCAPES.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}") for byte in raw)
            + '"'
        )
    return raw.decode("latin-1") + ("\t" if b" " in raw else "")


_ESCAPES = {ord("\n"): "\\n", ord("\t"): "\\t", ord('"'): '\\"', ord("\\"): "\\\\"}
