"""What a file that is no Python says that a port has to know: the same few things, whatever the file's syntax.

Readers fill a Document, checks read it; neither knows of the other.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

from tpuport.model import Edit, Finding, Rule, Safety, Severity, Span


class Text:
    """A source text, and where its characters stand."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._starts = [0]
        for line in source.split("\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)

    def span(self, begin: int, end: int) -> Span:
        """The place of the characters from offset `begin` to `end`."""
        return Span(*self._place(begin), *self._place(end))

    def offset(self, line: int, column: int) -> int:
        """The offset of a place; lines count from 1, columns from 0."""
        return self._starts[line - 1] + column

    def at(self, span: Span) -> str:
        """The characters at `span`."""
        return self.source[self.offset(*span[:2]) : self.offset(*span[2:])]

    def _place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset, hi=len(self._starts) - 1)
        return line, offset - self._starts[line - 1]


class Word(NamedTuple):
    """A piece of the text: what it means, and where it stands with its quotes."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Requirement:
    """A package that is asked for: `name` is normalized, `specifier` a set of Python's version specifiers."""

    name: str
    specifier: str
    span: Span
    url: str = ""
    marker: str = ""
    build: str = ""
    """What conda calls the build of a package, which says what it was built for."""
    optional: bool = False
    """Whether it belongs to an extra or a group that a plain installation leaves out."""

    @property
    def severity(self) -> Severity | None:
        """Information only for what is optional, and otherwise as its rule says."""
        return Severity.INFO if self.optional else None


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable that is set."""

    name: str
    value: str
    span: Span


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a shell: its words, of which assignments come first, and the operators around it (`|`, `&&`)."""

    words: tuple[Word, ...]
    span: Span
    before: str = ""
    after: str = ""
    in_script: bool = False
    """Whether it stands in a shell script, with room for more lines around it."""


@dataclass(frozen=True, slots=True)
class Image:
    """The image that a container begins with; `argument` is the build argument that it can be replaced by."""

    reference: str
    span: Span
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A value in a tree of mappings and lists, by the keys that lead there; list indices are left out.

    `text` is what a scalar says, empty for a mapping or list; `siblings` are the keys beside its own.
    """

    path: tuple[str, ...]
    text: str
    span: Span
    key_span: Span
    siblings: frozenset[str] = frozenset()
    document: int = 0
    """Which of a file's documents it belongs to."""
    is_scalar: bool = True
    is_item: bool = False
    """Whether it is an item of a list, with no key of its own: then the last key is that of the list."""

    @property
    def key(self) -> str:
        """The last key."""
        return self.path[-1] if self.path else ""


@dataclass(frozen=True, slots=True)
class Document:
    """One file, by kind of statement, each in the order of the text."""

    kind: str
    text: Text
    requirements: list[Requirement] = field(default_factory=list)
    indexes: list[Word] = field(default_factory=list)
    """Addresses that packages are fetched from."""
    interpreters: list[Word] = field(default_factory=list)
    """Ranges of Python versions that are asked for, as version specifiers."""
    variables: list[Variable] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    directives: list[Word] = field(default_factory=list)
    """Words of comments that a job scheduler reads."""
    blocks: list[tuple[int, int]] = field(default_factory=list)
    """First and last line of each piece in which no line of its own may be put: words and texts over several lines."""
    images: list[Image] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)

    def written(self, one: Requirement) -> str:
        """A requirement as the file has it; with its name, where that is a key beside it."""
        raw = self.text.at(one.span).strip("\"'")
        return raw if re.match(r"[A-Za-z]|\./", raw) else f"{one.name} = {raw}"


def found(
    rule: Rule,
    span: Span,
    message: str = "",
    reason: str = "",
    edits: tuple[Edit, ...] = (),
    *,
    severity: Severity | None = None,
    safety: Safety | None = None,
    chain: int | None = None,
) -> Finding:
    """A finding of `rule` at `span`; what is not given is the rule's own."""
    return Finding(
        rule.code,
        rule.name,
        message or rule.title,
        span,
        severity or rule.severity,
        (safety or rule.safety) if edits else Safety.MANUAL,
        edits,
        reason,
        chain,
    )
