"""Calls of nvidia-smi, which is there only beside NVIDIA's driver."""

import re
from collections.abc import Iterator

from tpuport.kinds.document import Command, Document, found
from tpuport.model import Finding, ReplaceText, Rule, Severity

_PROGRAM = "nvidia-smi"
_TESTS = ("command", "which", "type", "hash")
_SHOWN = f"call it where it is there, behind `command -v {_PROGRAM} &&`; `tpu-info` shows TPUs"
_READ = "count devices with `python -c 'import torch; print(torch.accelerator.device_count())'`; `tpu-info` shows TPUs"

_CONDITION = re.compile(r"\b(?:if|elif|while|until)\s*\Z")
"""What makes the command that follows a condition."""


def check(document: Document, rule: Rule) -> Iterator[Finding]:
    """A finding for every call; information only, where the script asks for the program first or goes on without it."""
    asked = 0
    for command in document.commands:
        names = [word.text.rpartition("/")[2] for word in command.words if word.text != "sudo"]
        begin = document.text.offset(*command.span[:2])
        if begin >= asked and names and names[0] in _TESTS and _PROGRAM in names:
            asked = _answered_until(document, command)
        if not names or names[0] != _PROGRAM:
            continue
        if begin < asked or command.after == "||":
            yield found(rule, command.span, severity=Severity.INFO)
        elif _stands_alone(document, command):
            own = document.text.at(command.span)
            guarded = f"if command -v {_PROGRAM} >/dev/null 2>&1; then {own}; fi"
            yield found(rule, command.span, edits=(ReplaceText(command.span, guarded),))
        else:
            is_read = command.before == "$(" or command.after in ("|", "|&")
            yield found(rule, command.span, reason=_READ if is_read else _SHOWN)


def _answered_until(document: Document, command: Command) -> int:
    """The offset up to which the answer of a test holds: the end of its `if` or its line, or that of the text."""
    source = document.text.source
    begin, end = document.text.offset(*command.span[:2]), document.text.offset(*command.span[2:])
    if command.before == "$(" or command.after == "||":
        return len(source)  # kept in a variable, or the script ends without it
    line = source.rfind("\n", 0, begin) + 1
    if not re.search(r"\bif\b", source[line:begin]):
        return source.find("\n", end) % (len(source) + 1)
    depth = 1
    for word in re.finditer(r"\b(?:if|fi)\b", source[end:]):
        depth += 1 if word[0] == "if" else -1
        if not depth:
            return end + word.start()
    return len(source)


def _stands_alone(document: Document, command: Command) -> bool:
    """Whether it is all of a line of a script, with nothing that reads what it prints."""
    if not command.in_script or not {command.before, command.after} <= {"", "\n"}:
        return False
    line = document.text.source.split("\n")[command.span.line - 1]
    rest = line[command.span.end_column :].strip()
    alone = not line[: command.span.column].strip() and (not rest or rest.startswith("#"))
    begin = document.text.offset(command.span.line, 0)
    return alone and command.span.line == command.span.end_line and not _CONDITION.search(document.text.source[:begin])
