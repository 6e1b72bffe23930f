"""Which lines changed since a revision, read from git: no checkout, no stash, nothing written."""

import codecs
import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tpuport.errors import TpuportError, UsageError
from tpuport.model import Span
from tpuport.source.git import find_top, output

_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_DIFF = (
    "diff",
    "--unified=0",
    "--inter-hunk-context=0",
    "--find-renames",
    "--no-relative",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules=all",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)
"""Every option that a user's own git configuration could turn against the parser is set here."""

_HINT = "name a branch, tag or commit; in CI, fetch it first (a checkout with its full history)"


@dataclass(frozen=True, slots=True)
class Changes:
    """Lines of the working tree, staged or not, that differ from the revision; a file not named has changed whole."""

    _ranges: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def touches(self, path: Path, span: Span) -> bool:
        """Whether a line that `span` covers has changed."""
        ranges = self._ranges.get(os.path.realpath(path))
        return ranges is None or any(first <= span.end_line and span.line <= last for first, last in ranges)


def since(revision: str, files: Iterable[Path]) -> Changes:
    """The changes of `files` since their history parted from `revision`.

    Raises UsageError for a revision that git does not know, and for files in no repository.
    """
    tops: dict[Path, list[str]] = {}
    for file in files:
        real = Path(os.path.realpath(file))
        top = find_top(real.parent)
        if top is None:
            raise UsageError(f"--diff-base: {file} is in no git repository", hint="lint files that git tracks")
        tops.setdefault(top, []).append(str(real))
    ranges: dict[str, list[tuple[int, int]]] = {}
    for top, names in tops.items():
        try:
            changed = _of_repository(top, revision)
        except FileNotFoundError:
            raise UsageError("--diff-base: git is not installed") from None
        ranges.update((name, changed[name]) for name in names if name in changed)
    return Changes(ranges)


def _of_repository(top: Path, revision: str) -> dict[str, list[tuple[int, int]]]:
    """The changed lines of every tracked file by its full name."""
    try:
        commit = output(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    except TpuportError:
        raise UsageError(f"--diff-base: git knows no revision {revision!r} in {top}", hint=_HINT) from None
    base = commit.decode().strip()
    with contextlib.suppress(TpuportError):  # no common ancestor, or no commit yet: then the revision itself is it
        base = output(top, "merge-base", base, "HEAD").decode().split()[0]
    tracked = [os.fsdecode(name) for name in output(top, "ls-files", "-z").split(b"\0") if name]
    changed: dict[str, list[tuple[int, int]]] = {os.path.join(top, name): [] for name in tracked}
    for name, first, last in parse(output(top, *_DIFF, base, "--")):
        changed.setdefault(os.path.join(top, name), []).append((first, last))
    return changed


def parse(diff: bytes) -> Iterator[tuple[str, int, int]]:
    """File, first and last line of every stretch of new lines in a unified diff without context."""
    lines = iter(diff.split(b"\n"))
    name = ""
    for line in lines:
        if line.startswith(b"+++ "):
            name = _name(line[4:])
        elif hunk := _HUNK.match(line):
            removed, start, added = (1 if group is None else int(group) for group in hunk.groups())
            for _ in range(removed + added):
                if next(lines, b"").startswith(b"\\"):  # no newline at the end of the old file
                    next(lines, None)
            if added:
                yield name, start, start + added - 1


def _name(quoted: bytes) -> str:
    """A name as git prints it after `+++`: in C's quotes if it has odd characters, with a tab if it has spaces."""
    raw = quoted.rstrip(b"\t")
    if raw.startswith(b'"'):
        raw = codecs.escape_decode(raw[1:-1])[0]
    return os.fsdecode(raw.removeprefix(b"b/"))
