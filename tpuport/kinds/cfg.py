"""setup.cfg: what a package asks for."""

import re

from tpuport.kinds import packages
from tpuport.kinds.document import Document, Text, Word
from tpuport.kinds.plain import Plain

KIND = "cfg"


def read(source: str) -> Document:
    """The requirements and the range of Python versions under `[options]` and its extras."""
    text = Text(source)
    document = Document(KIND, text)
    section = key = ""
    for number, line in enumerate(source.split("\n"), 1):
        own = re.sub(r"(?:^|\s)[#;].*", "", line).rstrip()
        if header := re.fullmatch(r"\[(.+)\]", own):
            section, key = header[1].strip(), ""
            continue
        if not own.strip():
            continue
        if not own[0].isspace():
            key, _, value = own.partition("=")
            key = key.strip()
            column = len(own) - len(value.lstrip())
        else:
            value = own
            column = len(own) - len(own.lstrip())
        if not value.strip():
            continue
        span = text.span(text.offset(number, column), text.offset(number, len(own)))
        if section == "options" and key == "python_requires":
            document.interpreters.append(Word(value.strip(), span))
        elif (section == "options" and key == "install_requires") or section == "options.extras_require":
            optional = section != "options"
            if one := packages.requirement(value.strip(), span, optional=optional):
                document.requirements.append(one)
    return document


HANDLER = Plain(KIND, (*packages.WORDS, b"python_requires"), read)
