"""TOML: pyproject.toml and Pipfile with what they ask for, and settings."""

import re
import tomllib
from collections.abc import Iterator

from tpuport.kinds import Unparsed, packages, settings
from tpuport.kinds.document import Document, Entry, Text, Word
from tpuport.kinds.plain import Plain
from tpuport.model import Span

KIND = "toml"
_TOKEN = re.compile(
    r"""
    \"{3}(?:[^\\]|\\.)*?\"{3,5} | '{3}.*?'{3,5} | "(?:[^"\\\n]|\\.)*" | '[^'\n]*'  # strings
    | \#[^\n]* | \[\[ | \]\] | [{}\[\],=.\n] | [^\s{}\[\],=."'\#]+
    """,
    re.DOTALL | re.VERBOSE,
)


def read(source: str) -> Document:
    """Every value with the keys that lead to it. Raises Unparsed for what is no TOML."""
    try:
        tomllib.loads(source)
    except ValueError as error:  # TOMLDecodeError, and numbers of thousands of digits
        place = re.search(r"at line (\d+)", str(error))
        line = int(place[1]) if place else 0
        raise Unparsed(f"not TOML as it stands: {error}", line) from None
    text = Text(source)
    document = Document(KIND, text)
    document.entries.extend(settings.with_siblings(_Reader(text).entries()))
    settings.interpret(document)
    _project(document)
    _poetry(document)
    _pipfile(document)
    return document


class _Reader:
    """A reader of valid TOML that keeps the places of its values."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._tokens = [token for token in _TOKEN.finditer(text.source) if not token[0].startswith("#")]
        self._at = 0

    def entries(self) -> Iterator[Entry]:
        """Every table and value."""
        table: tuple[str, ...] = ()
        while self._at < len(self._tokens):
            sign = self._tokens[self._at][0]
            if sign == "\n":
                self._at += 1
            elif sign in ("[", "[["):
                self._at += 1
                table, span = self._key()
                yield Entry(table, "", span, span, is_scalar=False)
                self._at += 1  # the closing bracket
                if sign == "[[" and self._sign() == "]":
                    self._at += 1
            else:
                key, span = self._key()
                self._at += 1  # the equals sign
                yield from self._value((*table, *key), span)

    def _sign(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _key(self) -> tuple[tuple[str, ...], Span]:
        parts = []
        first = last = self._tokens[self._at]
        while self._sign() not in ("=", "]", "]]"):
            last = self._tokens[self._at]
            if last[0] != ".":
                parts.append(_plain(last[0]))
            self._at += 1
        return tuple(parts), self._text.span(first.start(), last.end())

    def _value(self, path: tuple[str, ...], key: Span | None) -> Iterator[Entry]:
        token = self._tokens[self._at]
        span = self._text.span(*token.span())
        self._at += 1
        if token[0] == "[" or token[0] == "[[":
            yield Entry(path, "", span, key or span, is_scalar=False, is_item=key is None)
            yield from self._array(path, nested=token[0] == "[[")
        elif token[0] == "{":
            yield Entry(path, "", span, key or span, is_scalar=False, is_item=key is None)
            while self._sign() != "}":
                if self._sign() in (",", "\n"):
                    self._at += 1
                    continue
                name, own = self._key()
                self._at += 1
                yield from self._value((*path, *name), own)
            self._at += 1
        else:
            end = token
            while self._sign() not in ("\n", ",", "]", "]]", "}", ""):  # dates and fractions are several tokens
                end = self._tokens[self._at]
                self._at += 1
            whole = self._text.source[token.start() : end.end()]
            yield Entry(
                path, _plain(whole), self._text.span(token.start(), end.end()), key or span, is_item=key is None
            )

    def _array(self, path: tuple[str, ...], *, nested: bool) -> Iterator[Entry]:
        depth = 2 if nested else 1
        while depth:
            sign = self._sign()
            if sign in ("]", "]]"):
                depth -= len(sign)
                self._at += 1
            elif sign in (",", "\n"):
                self._at += 1
            elif sign in ("[", "[["):
                depth += len(sign)
                self._at += 1
            else:
                yield from self._value(path, None)


def _plain(word: str) -> str:
    """What a word of TOML says: without quotes, and a string with its escapes undone."""
    if word[:1] in "\"'":
        return str(tomllib.loads(f"x = {word}")["x"])
    return word


def _project(document: Document) -> None:
    for entry in document.entries:
        if not entry.is_scalar:
            continue
        match entry.path:
            case ("project", "dependencies"):
                optional = False
            case ("project", "optional-dependencies", _) | ("dependency-groups", _):
                optional = True
            case ("project", "requires-python"):
                document.interpreters.append(Word(entry.text, entry.span))
                continue
            case ("tool", "uv", "index", "url") | ("tool", "poetry", "source", "url") | ("source", "url"):
                document.indexes.append(Word(entry.text, entry.span))
                continue
            case _:
                continue
        one = packages.requirement(entry.text, entry.span, optional=optional)
        if one is not None:
            document.requirements.append(one)


def _poetry(document: Document) -> None:
    for entry in document.entries:
        match entry.path:
            case ("tool", "poetry", "dependencies", name) | ("tool", "poetry", "dependencies", name, "version"):
                optional = False
            case ("tool", "poetry", "group", _, "dependencies", name):
                optional = True
            case _:
                continue
        if entry.is_scalar and name == "python":
            document.interpreters.append(Word(packages.poetry_specifier(entry.text), entry.span))
        elif entry.is_scalar:
            optional = optional or "optional" in entry.siblings
            document.requirements.append(packages.poetry(name, entry.text, entry.span, optional=optional))


def _pipfile(document: Document) -> None:
    for entry in document.entries:
        match entry.path:
            case ("packages" | "dev-packages" as table, name) | ("packages" | "dev-packages" as table, name, "version"):
                if entry.is_scalar:
                    optional = table == "dev-packages"
                    document.requirements.append(packages.poetry(name, entry.text, entry.span, optional=optional))
            case ("requires", "python_version"):
                document.interpreters.append(Word(f"=={entry.text}.*", entry.span))


HANDLER = Plain(KIND, (*settings.WORDS, *packages.WORDS, b"python"), read)
