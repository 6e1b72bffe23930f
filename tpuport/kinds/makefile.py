"""Makefiles: the commands of their recipes, and the variables that they export."""

import re

from tpuport.kinds import commands
from tpuport.kinds.document import Document, Text, Variable
from tpuport.kinds.plain import Plain, statements
from tpuport.kinds.shell import WORDS

KIND = "makefile"
_RECIPE = re.compile(r"\t[ \t]*[@+-]*[ \t]*")
_EXPORT = re.compile(r"(?:[^=#]*?:[ \t]*)?export[ \t]+(?P<name>[A-Za-z_]\w*)[ \t]*[:?+]*=[ \t]*(?P<value>[^#\n]*)")
"""A variable for the commands of all recipes, or of one target."""

_ASSIGNED = re.compile(r"[A-Za-z_]\w*[ \t]*[:?+]?=[ \t]*")
"""A variable of make, which may hold a command or the beginning of one."""

_SHELL = re.compile(r"\$\(shell[ \t]+([^()]*)\)")
"""A command whose output make reads."""


def read(source: str) -> Document:
    """What the recipes run, what is exported, and what make itself runs."""
    text = Text(source)
    document = Document(KIND, text)
    for first, last in statements(source):
        begin, end = text.offset(first, 0), text.offset(last + 1, 0) - 1
        if recipe := _RECIPE.match(source, begin, end):
            commands.read(document, recipe.end(), end)
        elif exported := _EXPORT.match(source, begin, end):
            value = exported["value"].strip()
            document.variables.append(Variable(exported["name"], value, text.span(*exported.span("name"))))
        elif (assigned := _ASSIGNED.match(source, begin, end)) and commands.starts_program(
            source[assigned.end() : end]
        ):
            commands.read(document, assigned.end(), end)
        for run in _SHELL.finditer(source, begin, end):
            commands.read(document, *run.span(1))
    return document


HANDLER = Plain(KIND, WORDS, read, indented=False)
