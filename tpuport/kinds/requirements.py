"""Requirements files of pip."""

import re

from tpuport.kinds import packages
from tpuport.kinds.document import Document, Text
from tpuport.kinds.plain import Plain

KIND = "requirements"
COMMENT = re.compile(r"(?:^|\s)#.*")


def read(source: str) -> Document:
    """What the lines ask for; one that ends with a backslash goes on in the next."""
    text = Text(source)
    document = Document(KIND, text)
    at = 0
    while at < len(source):
        stop = at
        while True:
            end = source.find("\n", stop)
            end = len(source) if end < 0 else end
            stop = end + 1
            if not source[at:end].endswith("\\") or stop >= len(source):
                break
        first = source[at:end].split("\n")[0]
        own = COMMENT.sub("", first).rstrip(" \t\\")
        indent = len(own) - len(own.lstrip())
        if own.strip():
            packages.line(document, own.strip(), text.span(at + indent, at + len(own)))
        at = stop
    return document


HANDLER = Plain(KIND, packages.WORDS, read)
