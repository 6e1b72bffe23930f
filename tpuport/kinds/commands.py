"""The commands of a shell script, or of a piece of one in another file: their words, and where those stand."""

import re
from collections.abc import Iterator
from dataclasses import replace

from tpuport.kinds import images, options, packages
from tpuport.kinds.document import Command, Document, Text, Variable, Word

ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
_OPERATOR = re.compile(r"&&|\|\||;;|\|&|[;&|()\n]")
_REDIRECTION = re.compile(r"(?:\d*|&)(?:<<<|>>|>&|<&|>\||<>|[<>])&?")
_HEREDOC = re.compile(r"<<-?[ \t]*(?P<quote>['\"\\]?)(?P<end>\w+)['\"]?")
_CONTINUED = re.compile(r"\\[ \t]*\n(?:[ \t]*#[^\n]*\n|[ \t]*\n)*")
_HELD = re.compile(r"[A-Za-z_]\w*\+?=(?:\((?P<array>.*)\)|(?P<quote>['\"]?)(?P<text>.*)(?P=quote))", re.DOTALL)
_QUOTED = re.compile(r"(?P<quote>['\"])(?P<text>.*)(?P=quote)", re.DOTALL)
_STARTS = re.compile(
    r"torchrun|accelerate|deepspeed|vllm|sglang|srun|sbatch|mpirun|docker|podman|singularity|apptainer|nsys|numactl|env"
    r"|sudo|nohup|exec|bash|sh|pip3?|uv|(?:python|\$\{?PYTHON)[\d.]*\}?"
)
"""Programs that a text begins with which is a command: what a variable holds may as well be a sentence."""

_SHELL = re.compile(r"(?:ba|z)?sh")
_BLANKS = " \t\r"
_DEEPEST = 8
"""Substitutions inside of substitutions that are followed: nobody writes more, and each is read once for its depth."""

_KEYWORDS = {"if", "then", "else", "elif", "fi", "do", "done", "while", "until", "!", "time", "{", "}"}
_DECLARES = {"export", "declare", "env", "local", "readonly", "set", "setenv", "ENV"}


def read(document: Document, begin: int, end: int, *, in_script: bool = False) -> None:
    """Add the commands between two offsets of the document's text, and what they install and set."""
    for command in commands(document.text, begin, end):
        add(document, replace(command, in_script=in_script))


def add(document: Document, command: Command) -> None:
    """Add one command, and what it installs and sets."""
    document.commands.append(command)
    if command.span.line < command.span.end_line:
        document.blocks.append((command.span.line, command.span.end_line))
    document.variables.extend(_variables(command))
    packages.from_command(document, command)
    images.from_command(document, command)
    options.from_command(document, command)


def commands(text: Text, begin: int, end: int, depth: int = 0, blanks: str = _BLANKS) -> Iterator[Command]:
    """The commands between two offsets, those inside of substitutions after the one that they are part of.

    `blanks` are between words: in an array, ends of lines are among them.
    """
    words: list[Word] = []
    inner: list[tuple[int, int]] = []
    heredocs: list[str] = []
    before = ""
    at = begin
    source = text.source

    def held() -> Iterator[Command]:
        for start, stop, blanks in _held(text, words):
            yield from commands(text, start, stop, depth + 1, blanks)

    def command(after: str) -> Iterator[Command]:
        while words and words[0].text in _KEYWORDS:
            words.pop(0)
        if words:
            span = words[0].span._replace(end_line=words[-1].span.end_line, end_column=words[-1].span.end_column)
            yield Command(tuple(words), span, before, after)
            if depth < _DEEPEST:
                yield from (replace(part, before="$(") for part in held())
        for start, stop in inner if depth < _DEEPEST else ():
            yield from (replace(part, before="$(") for part in commands(text, start, stop, depth + 1))
        words.clear()
        inner.clear()

    while at < end:
        character = source[at]
        if continued := _CONTINUED.match(source, at, end):
            at = continued.end()
        elif character in blanks:
            at += 1
        elif character == "#":
            at = _line_end(source, at, end)
        elif heredoc := (None if source.startswith("<<<", at) else _HEREDOC.match(source, at, end)):
            heredocs.append(heredoc["end"])
            at = heredoc.end()
        elif redirection := _REDIRECTION.match(source, at, end):
            at = redirection.end()
            while at < end and source[at] in " \t":
                at += 1
            at = _word(source, at, end)[1]  # the file, which is no word of the command
        elif operator := _OPERATOR.match(source, at, end):
            yield from command(operator[0])
            before = operator[0]
            at = operator.end()
            if before == "\n" and heredocs:
                at = _after_heredocs(source, at, end, heredocs)
                heredocs = []
        else:
            value, stop, nested = _word(source, at, end)
            words.append(Word(value, text.span(at, stop)))
            inner += nested
            at = max(stop, at + 1)
    yield from command("")


def _held(text: Text, words: list[Word]) -> Iterator[tuple[int, int, str]]:
    """Where commands stand that a command holds as texts: the values of variables, and what a shell is given to run."""
    given = False
    for word in words:
        begin, end = text.offset(*word.span[:2]), text.offset(*word.span[2:])
        raw = text.source[begin:end]
        if given and (quoted := _QUOTED.fullmatch(raw)):
            yield begin + quoted.start("text"), begin + quoted.end("text"), _BLANKS
        elif assigned := _HELD.fullmatch(raw):
            part = "text" if assigned["array"] is None else "array"
            if starts_program(assigned[part]):
                blanks = _BLANKS if part == "text" else _BLANKS + "\n"
                yield begin + assigned.start(part), begin + assigned.end(part), blanks
        given = (re.fullmatch(r"-\w*c", word.text) is not None and _runs_shell(words)) or word.text == "eval"


def _runs_shell(words: list[Word]) -> bool:
    return any(_SHELL.fullmatch(word.text.rpartition("/")[2]) for word in words)


def starts_program(text: str) -> bool:
    """Whether a text is a command of a program that tells by its name, behind variables that it is given."""
    own = next((word for word in text.split() if not ASSIGNMENT.fullmatch(word)), "")
    return _STARTS.fullmatch(own.rpartition("/")[2]) is not None


def words(text: Text, begin: int, end: int) -> tuple[Word, ...]:
    """The words of the one command between two offsets."""
    return next((command.words for command in commands(text, begin, end)), ())


def _word(source: str, at: int, end: int) -> tuple[str, int, list[tuple[int, int]]]:
    """A word's text without its quotes, where it ends, and the substitutions in it."""
    value: list[str] = []
    nested: list[tuple[int, int]] = []
    quote = ""
    while at < end:
        character = source[at]
        if source.startswith("$(", at) and quote != "'":
            stop = _closing(source, at + 2, end)
            if not source.startswith("$((", at):
                nested.append((at + 2, stop))
            value.append(source[at : stop + 1])
            at = stop + 1
        elif character == "`" and quote != "'":
            stop = source.find("`", at + 1, end)
            stop = end if stop < 0 else stop
            nested.append((at + 1, stop))
            value.append(source[at : stop + 1])
            at = stop + 1
        elif character == "\\" and quote != "'":
            value.append("" if source[at + 1 : at + 2] == "\n" else source[at + 1 : at + 2])
            at += 2
        elif quote:
            quote = "" if character == quote else quote
            value.append(character if quote else "")
            at += 1
        elif character in "'\"":
            quote = character
            at += 1
        elif character == "(" and value and value[-1] == "=":  # an array: its items are no commands
            stop = _closing(source, at + 1, end)
            value.append(source[at : stop + 1])
            at = stop + 1
        elif character in " \t\r\n;&|()<>":
            break
        else:
            value.append(character)
            at += 1
    return "".join(value), min(at, end), nested


def _closing(source: str, at: int, end: int) -> int:
    depth = 1
    quote = ""
    while at < end:
        character = source[at]
        if character == "\\":
            at += 1
        elif quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if not depth:
                return at
        at += 1
    return end


def _line_end(source: str, at: int, end: int) -> int:
    stop = source.find("\n", at, end)
    return end if stop < 0 else stop


def _after_heredocs(source: str, at: int, end: int, ends: list[str]) -> int:
    for last in ends:
        while at < end:
            stop = _line_end(source, at, end)
            line = source[at:stop]
            at = stop + 1
            if line.strip() == last:
                break
    return at


def arguments(command: Command) -> tuple[Word, ...]:
    """The words from the program on, without assignments in front of it."""
    at = 0
    while at < len(command.words) and ASSIGNMENT.fullmatch(command.words[at].text):
        at += 1
    return command.words[at:]


def option(words: tuple[Word, ...], *names: str) -> tuple[Word, Word] | None:
    """An option and its value, which follows after `=` or as the next word."""
    for number, word in enumerate(words):
        name, equals, value = word.text.partition("=")
        if name in names:
            if equals:
                return word, Word(value, word.span)
            if number + 1 < len(words):
                return word, words[number + 1]
    return None


def _variables(command: Command) -> Iterator[Variable]:
    rest = arguments(command)
    leading = command.words[: len(command.words) - len(rest)]
    declares = bool(rest) and rest[0].text in _DECLARES
    for word in (*leading, *(rest if declares else ())):
        assigned = ASSIGNMENT.fullmatch(word.text)
        if assigned:
            yield Variable(assigned[1], assigned[2], word.span)
