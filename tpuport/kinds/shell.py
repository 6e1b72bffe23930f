"""Shell scripts, those of job schedulers among them."""

import re

from tpuport.kinds import commands
from tpuport.kinds.document import Document, Text
from tpuport.kinds.plain import Plain

KIND = "shell"
WORDS = (
    b"cuda",
    b"nccl",
    b"gpu",
    b"nvidia",
    b"torch",
    b"cupy",
    b"triton",
    b"xformers",
    b"flash",
    b"apex",
    b"bitsandbytes",
)


def read(source: str) -> Document:
    """The commands, what they install and set, and the directives of a scheduler."""
    text = Text(source)
    document = Document(KIND, text)
    commands.read(document, 0, len(source), in_script=True)
    for directive in re.finditer(r"^#(?:SBATCH|PBS|BSUB)[ \t]+([^\n]*?)[ \t]*$", source, re.MULTILINE):
        document.directives.extend(commands.words(text, *directive.span(1)))
    return document


HANDLER = Plain(KIND, WORDS, read)
