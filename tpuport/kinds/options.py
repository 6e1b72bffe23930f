"""What a Python script is told on its command line: settings like those of a file, by their names."""

import re
from collections.abc import Iterator
from itertools import zip_longest

from tpuport.kinds.document import Command, Document, Entry, Text, Word
from tpuport.model import Span

_SCRIPT = re.compile(r"\S+\.py")
_PYTHON = re.compile(r"(?:python|\$\{?PYTHON)[\d.]*\}?")
_LAUNCHERS = {"torchrun", "accelerate", "deepspeed"}
_OPTION = re.compile(r"--?(?P<name>[A-Za-z][\w.-]*)(?:=(?P<value>.*))?", re.DOTALL)
_OVERRIDE = re.compile(r"\+{0,2}(?P<name>[A-Za-z][\w.@/-]*)=(?P<value>.*)", re.DOTALL)
"""An option, and what Hydra and OmegaConf are told."""


def from_command(document: Document, command: Command) -> None:
    """Add what the command tells its script: a switch is true, dots in a name lead into a tree of settings."""
    words = _behind_script(command)
    found = list(_settings(document.text, words))
    names = frozenset(path[-1] for path, *_ in found)
    document.entries.extend(Entry(path, value, span, key, names) for path, value, span, key in found)


def _behind_script(command: Command) -> tuple[Word, ...]:
    names = [word.text.rpartition("/")[2] for word in command.words]
    runs = any(_PYTHON.fullmatch(name) or name in _LAUNCHERS for name in names)
    for at, word in enumerate(command.words):
        if _SCRIPT.fullmatch(word.text) and (runs or at == 0):
            return command.words[at + 1 :]
        if runs and word.text == "-m" and not _launches(command.words[at + 1 : at + 2]):
            return command.words[at + 2 :]
    return ()


def _launches(module: tuple[Word, ...]) -> bool:
    return bool(module) and module[0].text.startswith(("torch.distributed", "accelerate.", "pip", "pytest"))


def _settings(text: Text, words: tuple[Word, ...]) -> Iterator[tuple[tuple[str, ...], str, Span, Span]]:
    for word, after in zip_longest(words, words[1:]):
        if option := _OPTION.fullmatch(word.text):
            name, value = option["name"], option["value"]
            if value is not None:
                yield _path(name), value, _value_span(text, word, value), word.span
            elif after is None or after.text.startswith("-"):
                yield _path(name), "true", word.span, word.span
            else:
                yield _path(name), after.text, after.span, word.span
        elif override := _OVERRIDE.fullmatch(word.text):
            yield _path(override["name"]), override["value"], _value_span(text, word, override["value"]), word.span


def _path(name: str) -> tuple[str, ...]:
    return tuple(name.split("."))


def _value_span(text: Text, word: Word, value: str) -> Span:
    """Where the value of `name=value` stands; the whole word, if quotes are in the way."""
    begin, end = text.offset(*word.span[:2]), text.offset(*word.span[2:])
    at = text.source.find(value, begin, end) if value else -1
    return text.span(at, at + len(value)) if at >= 0 else word.span
