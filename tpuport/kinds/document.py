"""What a file that is no Python says that a port has to know: the same few things, whatever the file's syntax.

Readers fill a Document, checks read it; neither knows of the other.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from tpuport.model import Edit, Finding, Rule, Safety, Severity, Span


class Word(NamedTuple):
    """A piece of the text, without its quotes, and where it stands, with them."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Requirement:
    """A package that is asked for: `name` is normalized, `specifier` as written after it, `url` where one is named."""

    name: str
    specifier: str
    span: Span
    url: str = ""
    marker: str = ""
    optional: bool = False
    """Whether it belongs to an extra or a group that a plain installation leaves out."""


@dataclass(frozen=True, slots=True)
class Index:
    """An address that packages are fetched from, or the name of a channel."""

    address: str
    span: Span


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A range of Python versions that the project asks for."""

    specifier: str
    span: Span


@dataclass(frozen=True, slots=True)
class Document:
    """One file: what it asks to be installed and where from, by kind of statement, in the order of the text."""

    kind: str
    source: str
    requirements: list[Requirement] = field(default_factory=list)
    indexes: list[Index] = field(default_factory=list)
    interpreters: list[Interpreter] = field(default_factory=list)


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
    scope: str = "",
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
        scope,
    )
