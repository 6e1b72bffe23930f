"""JSON with the place of every value in its text, for edits that leave all other bytes as they are."""

import re
from dataclasses import dataclass
from json.decoder import JSONDecodeError, JSONDecoder

_STRING = JSONDecoder().raw_decode
_SPACE = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r"-?\d[\d.eE+-]*|true|false|null|NaN|-?Infinity")


@dataclass(frozen=True, slots=True)
class Node:
    """A value and where it stands: `value` is a str, a list or dict of nodes, or None for numbers and constants."""

    value: "str | list[Node] | dict[str, Node] | None"
    start: int
    end: int

    def get(self, key: str) -> "Node | None":
        """The value of a key; None where this is no object or has no such key."""
        return self.value.get(key) if isinstance(self.value, dict) else None

    @property
    def items(self) -> "list[Node]":
        """The elements of an array; none where this is no array."""
        return self.value if isinstance(self.value, list) else []

    @property
    def text(self) -> str:
        """The string; empty where this is none."""
        return self.value if isinstance(self.value, str) else ""


def parse(text: str) -> Node:
    """The document. Raises json's JSONDecodeError, and RecursionError for one that is nested too deeply."""
    node = _value(text, _skip(text, 0))
    if _skip(text, node.end) != len(text):
        raise JSONDecodeError("Extra data", text, node.end)
    return node


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int) -> Node:
    first = text[at : at + 1]
    if first == '"':
        string, end = _STRING(text, at)
        return Node(string, at, end)
    if first == "[":
        return _array(text, at)
    if first == "{":
        return _object(text, at)
    found = _PLAIN.match(text, at)
    if not found:
        raise JSONDecodeError("Expecting value", text, at)
    return Node(None, at, found.end())


def _array(text: str, start: int) -> Node:
    items: list[Node] = []
    at = _skip(text, start + 1)
    if text[at : at + 1] == "]":
        return Node(items, start, at + 1)
    while True:
        items.append(_value(text, at))
        at = _skip(text, items[-1].end)
        if text[at : at + 1] == "]":
            return Node(items, start, at + 1)
        at = _after_comma(text, at)


def _object(text: str, start: int) -> Node:
    members: dict[str, Node] = {}
    at = _skip(text, start + 1)
    if text[at : at + 1] == "}":
        return Node(members, start, at + 1)
    while True:
        if text[at : at + 1] != '"':
            raise JSONDecodeError("Expecting property name", text, at)
        key, at = _STRING(text, at)
        at = _skip(text, at)
        if text[at : at + 1] != ":":
            raise JSONDecodeError("Expecting ':' delimiter", text, at)
        members[key] = _value(text, _skip(text, at + 1))
        at = _skip(text, members[key].end)
        if text[at : at + 1] == "}":
            return Node(members, start, at + 1)
        at = _after_comma(text, at)


def _after_comma(text: str, at: int) -> int:
    if text[at : at + 1] != ",":
        raise JSONDecodeError("Expecting ',' delimiter", text, at)
    return _skip(text, at + 1)
