"""Dockerfiles: base images, and the commands of their instructions."""

import json as json_module
import re

from tpuport.kinds import commands, json
from tpuport.kinds.document import Command, Document, Image, Text, Variable, Word
from tpuport.kinds.plain import Plain, statements
from tpuport.kinds.shell import WORDS

KIND = "dockerfile"
_INSTRUCTION = re.compile(r"[ \t]*(?:ONBUILD[ \t]+)?([A-Za-z]+)[ \t]+(?:--\S+[ \t]+)*")
_REFERENCE = re.compile(r"\$\{?(\w+)")


def read(source: str) -> Document:
    """What each instruction says."""
    text = Text(source)
    document = Document(KIND, text)
    arguments: dict[str, tuple[str, Word]] = {}
    stages: set[str] = set()
    for first, last in statements(source):
        begin, end = text.offset(first, 0), text.offset(last + 1, 0) - 1
        head = _INSTRUCTION.match(source, begin, end)
        if head is None:
            continue
        match head[1].upper():
            case "FROM":
                words = commands.words(text, head.end(), end)
                if words and words[0].text not in stages:
                    document.images.append(_image(words[0], arguments))
                if len(words) > 2:
                    stages.add(words[2].text)
            case "ARG":
                for word in commands.words(text, head.end(), end):
                    if assigned := commands.ASSIGNMENT.fullmatch(word.text):
                        arguments[assigned[1]] = assigned[2], word
                        document.variables.append(Variable(assigned[1], assigned[2], word.span))
            case "ENV":
                _environment(document, commands.words(text, head.end(), end))
            case "RUN" | "CMD" | "ENTRYPOINT":
                _command(document, head.end(), end)
    return document


def _image(word: Word, arguments: dict[str, tuple[str, Word]]) -> Image:
    named = _REFERENCE.search(word.text)
    if named is None or named[1] not in arguments:
        return Image(word.text, word.span)
    if word.text in (f"${named[1]}", f"${{{named[1]}}}"):
        value, at = arguments[named[1]]
        return Image(value, at.span, named[1])
    whole = re.sub(r"\$\{?(\w+)\}?", lambda match: arguments.get(match[1], (match[0], word))[0], word.text)
    return Image(whole, word.span)


def _environment(document: Document, words: tuple[Word, ...]) -> None:
    if words and "=" not in words[0].text:  # the old form: one name, and its value
        value = " ".join(word.text for word in words[1:])
        document.variables.append(Variable(words[0].text, value, words[0].span))
        return
    for word in words:
        if assigned := commands.ASSIGNMENT.fullmatch(word.text):
            document.variables.append(Variable(assigned[1], assigned[2], word.span))


def _is_list(written: str) -> bool:
    """Whether it is a list of words as JSON; what only looks like one is read by a shell."""
    try:
        return written.lstrip().startswith("[") and isinstance(json_module.loads(written), list)
    except ValueError:
        return False


def _command(document: Document, begin: int, end: int) -> None:
    text = document.text
    if not _is_list(text.source[begin:end]):
        commands.read(document, begin, end)
        return
    words = tuple(Word(entry.text, entry.span) for entry in json.entries(text, begin, end) if entry.is_scalar)
    if words:
        span = words[0].span._replace(end_line=words[-1].span.end_line, end_column=words[-1].span.end_column)
        commands.add(document, Command(words, span))


HANDLER = Plain(KIND, WORDS, read)
