"""Templates of Helm and Jinja: their text without what is filled in, each character where it was.

Kubernetes manifests come as templates more often than not, and what they ask for stands in them as plain YAML.
"""

import re

_TAG = re.compile(r"\{\{-?(?P<value>.*?)-?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_NO_VALUE = re.compile(
    r"\s*(?:/\*|(?:if|else|end|range|with|define|block|template|break|continue)\b|\$\w+\s*:?=)|.*\bn?indent\b",
    re.DOTALL,
)
"""What begins a statement; and what fills in lines of its own, which `indent` pushes to their place."""

_VALUE = "x"
"""What stands for each character of a value: a word in every syntax."""

_EMPTY = "\r"
"""What stands for each character of a line that is all template: an empty line to YAML, also inside of a text."""


def is_template(source: str) -> bool:
    """Whether something is filled in."""
    return _TAG.search(source) is not None


def without_tags(source: str) -> str:
    """The text with a word in place of each value, spaces in place of statements, and nothing in lines of tags only.

    As long as the source: offsets in one are offsets in the other.
    """
    plain = _TAG.sub(_plain, source)
    lines = zip(source.split("\n"), plain.split("\n"), strict=True)
    return "\n".join(_EMPTY * len(new) if old.strip() and not new.strip() else new for old, new in lines)


def _plain(tag: re.Match[str]) -> str:
    value = tag["value"]
    is_word = value is not None and not _NO_VALUE.match(value)
    return re.sub(r"[^\n]", _VALUE if is_word else " ", tag[0])
