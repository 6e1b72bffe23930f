"""Shell scripts, those of job schedulers among them."""

import re

from tpuport.kinds import commands, packages, settings
from tpuport.kinds.document import Document, Text
from tpuport.kinds.plain import Plain

KIND = "shell"
WORDS = (*settings.WORDS, b"accelerate", *packages.WORDS)

_OTHER_SHELL = re.compile(r"#!.*\b(?:t?csh|fish)\b")
"""What begins a script of a shell with another grammar: it is read, and nothing is written into it."""


def read(source: str) -> Document:
    """The commands, what they install and set, and the directives of a scheduler."""
    text = Text(source)
    document = Document(KIND, text)
    commands.read(document, 0, len(source), in_script=not _OTHER_SHELL.match(source))
    for directive in re.finditer(r"^#(?:SBATCH|PBS|BSUB)[ \t]+([^\n]*?)[ \t]*$", source, re.MULTILINE):
        document.directives.extend(commands.words(text, *directive.span(1)))
    return document


HANDLER = Plain(KIND, WORDS, read)
