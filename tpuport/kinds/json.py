"""JSON settings."""

import json
import re
from collections.abc import Iterator

from tpuport.kinds import Unparsed, settings
from tpuport.kinds.document import Document, Entry, Text
from tpuport.kinds.plain import Plain
from tpuport.model import Span

KIND = "json"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_PLAIN = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=(?:\s|//[^\n]*|/\*.*?\*/)*[}\]])', re.DOTALL)


def read(source: str) -> Document:
    """Every value with the keys that lead to it. Raises Unparsed for what is no JSON, comments aside."""
    plain = _PLAIN.sub(_blank, source)
    try:
        json.loads(plain)
    except json.JSONDecodeError as error:
        raise Unparsed(f"not JSON as it stands: line {error.lineno}: {error.msg}", error.lineno) from None
    except ValueError as error:  # numbers of thousands of digits
        raise Unparsed(f"not JSON as it stands: {error}") from None
    text = Text(plain)
    document = Document(KIND, Text(source))
    document.entries.extend(settings.with_siblings(entries(text, 0, len(source))))
    settings.interpret(document)
    return document


def _blank(found: re.Match[str]) -> str:
    """Spaces for comments, and for commas before a closing bracket, which many readers of settings allow."""
    return found[0] if found[0].startswith('"') else re.sub(r"[^\n]", " ", found[0])


def entries(text: Text, begin: int, end: int) -> Iterator[Entry]:
    """The entries of the valid JSON between two offsets."""
    tokens = _TOKEN.finditer(text.source, begin, end)
    yield from _value(text, tokens, next(tokens), (), None)


def _value(
    text: Text, tokens: Iterator[re.Match[str]], token: re.Match[str], path: tuple[str, ...], key: Span | None
) -> Iterator[Entry]:
    sign = token[0]
    span = text.span(*token.span())
    if sign not in ("{", "["):
        value = json.loads(sign) if sign.startswith('"') else sign
        yield Entry(path, value, span, key or span, is_item=key is None)
        return
    yield Entry(path, "", span, key or span, is_scalar=False, is_item=key is None)
    for token in tokens:
        if token[0] in "}]":
            return
        if token[0] == ",":
            continue
        if sign == "[":
            yield from _value(text, tokens, token, path, None)
        else:
            next(tokens)  # the colon
            yield from _value(text, tokens, next(tokens), (*path, json.loads(token[0])), text.span(*token.span()))


HANDLER = Plain(KIND, settings.WORDS, read, comments=False)
