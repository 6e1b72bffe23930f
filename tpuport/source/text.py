"""Read a Python source file into text and back into the very same bytes.

The text that the rest of tpuport sees has `\\n` at every line's end, as Python's own parser sees it; the byte-order
mark, the encoding and each line's own ending are put back by `encode`.
"""

import hashlib
import os
import re
import stat
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from io import BytesIO
from pathlib import Path

from tpuport import kinds
from tpuport.model import Outcome, Status

MAX_SIZE = 5_000_000
"""Bytes: larger files are generated, and are skipped unless the configuration says otherwise."""

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(r"\r\n|\r|\n")


class Unreadable(Exception):
    """A file that gives no source text; `outcome` says whether it is skipped or failed, and why."""

    def __init__(self, path: Path, status: Status, reason: str, line: int = 0) -> None:
        super().__init__(f"{path}: {reason}")
        self.outcome = Outcome(path, status, reason, line=line)


@dataclass(frozen=True, slots=True)
class Source:
    """The text of one file, and what it takes to write it back.

    `line_ends` is the one line ending of the file, or one for each line where they differ.
    """

    text: str
    encoding: str = "utf-8"
    bom: bool = False
    line_ends: str | tuple[str, ...] = "\n"

    def encode(self, text: str) -> bytes:
        """Bytes of `text` in this file's encoding and line endings; `encode(self.text)` is the file as it was.

        Raises UnicodeEncodeError if the encoding has no room for a character of `text`.
        """
        if isinstance(self.line_ends, tuple):
            text = _with_line_ends(self.text, self.line_ends, text)
        elif self.line_ends != "\n":
            text = text.replace("\n", self.line_ends)
        return (_BOM if self.bom else b"") + text.encode(self.encoding)


def digest(raw: bytes) -> bytes:
    """What stands for a file's content where only equality matters."""
    return hashlib.blake2b(raw, digest_size=20).digest()


def decode(raw: bytes, path: Path) -> Source:
    """Decode a file's bytes as Python would if they are Python's, else as UTF-8. Raises Unreadable if they are not."""
    bom = raw.startswith(_BOM)
    if kinds.of(path) not in ("", kinds.PYTHON):
        return _other(raw[3:] if bom else raw, bom, path)
    if b"\0" in raw:
        raise Unreadable(path, Status.FAILED, "binary data (NUL bytes), not Python source")
    body = raw[3:] if bom else raw
    encoding = _encoding(raw, path)
    try:
        text = body.decode(encoding)
        # Other codecs may give text that is no Unicode (lone surrogates), or have several forms of one text.
        exact = encoding == "utf-8" or (text.encode(encoding) == body and bool(text.encode()) == bool(text))
    except (UnicodeError, LookupError) as error:
        raise _undecodable(path, body, encoding, error) from None
    if not exact:
        raise Unreadable(path, Status.FAILED, f"encoding {encoding} does not give back the same bytes")
    return _source(text, encoding, bom)


def _other(body: bytes, bom: bool, path: Path) -> Source:
    """The text of a file that is no Python; what is no text there is no failure, but data of another kind."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise Unreadable(path, Status.SKIPPED, f"not UTF-8 text: line {line}: {error.reason}", line) from None
    if "\0" in text:
        raise Unreadable(path, Status.SKIPPED, "binary data (NUL bytes), not text")
    return _source(text, "utf-8", bom)


def _source(text: str, encoding: str, bom: bool) -> Source:
    if "\r" not in text:
        return Source(text, encoding, bom)
    ends = _LINE_END.findall(text)
    kinds = set(ends)
    line_ends = ends[0] if len(kinds) == 1 else tuple(ends)
    return Source(_LINE_END.sub("\n", text), encoding, bom, line_ends)


def read_bytes(path: Path, max_size: int = MAX_SIZE) -> bytes:
    """Bytes of a regular file of at most `max_size` bytes; anything else raises Unreadable and is not opened for long.

    O_NONBLOCK keeps a pipe that took the file's place since discovery from blocking the run.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise Unreadable(path, Status.SKIPPED, "not a regular file")
            if status.st_size > max_size:
                reason = f"{status.st_size:,} bytes, more than max-file-size = {max_size}"
                raise Unreadable(path, Status.SKIPPED, reason)
            return file.read()
    except OSError as error:
        raise Unreadable(path, Status.FAILED, f"cannot be read: {error.strerror or error}") from None


def read(path: Path, max_size: int = MAX_SIZE) -> Source:
    """Read and decode one file. Raises Unreadable."""
    return decode(read_bytes(path, max_size), path)


def _encoding(raw: bytes, path: Path) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(raw).readline)
    except SyntaxError as error:
        # detect_encoding blames the declaration even where the first lines just hold bytes that are not UTF-8.
        raise Unreadable(path, Status.FAILED, f"cannot be decoded: {error.msg}") from None
    return "utf-8" if encoding == "utf-8-sig" else encoding


def _undecodable(path: Path, body: bytes, encoding: str, error: Exception) -> Unreadable:
    if isinstance(error, UnicodeDecodeError):
        line = body.count(b"\n", 0, error.start) + 1
        return Unreadable(path, Status.FAILED, f"cannot be decoded as {encoding}: line {line}: {error.reason}", line)
    return Unreadable(path, Status.FAILED, f"cannot be decoded as {encoding}: {error}")


def lines(text: str) -> list[str]:
    """The lines of a text with their ends. `\\n` alone ends one, as for git and Python's parser: form feeds do not."""
    *whole, last = text.split("\n")
    return [line + "\n" for line in whole] + ([last] if last else [])


def _with_line_ends(old: str, ends: Sequence[str], new: str) -> str:
    """Give each line of `new` the ending that its line had in `old`; a new line takes that of the line before it."""
    before, after = old.split("\n"), new.split("\n")
    if len(before) == len(after):
        return "".join(line + end for line, end in zip(after, (*ends, ""), strict=True))
    chosen: list[str] = []
    for _, start, stop, new_start, new_stop in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        kept = ends[start:stop][: new_stop - new_start]
        chosen.extend(kept)
        missing = new_stop - new_start - len(kept)
        chosen.extend([chosen[-1] if chosen else ends[0]] * missing)
    return "".join(line + end for line, end in zip(after, (*chosen[: len(after) - 1], ""), strict=True))
