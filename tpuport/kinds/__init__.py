"""The kinds of file that a run reads: which file is of which, and who reads, matches and rewrites it.

A new kind is a name in `_BY_SUFFIX` or in `of`, and a module `tpuport/kinds/<name>.py` with a `HANDLER`. Nothing else
asks what a file is: discovery, survey, engine, cache and writing all go through `of`.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, Protocol

from tpuport.fixes import Rewritten
from tpuport.model import Facts, Finding, Project, Rule

PYTHON = "python"

_BY_SUFFIX = {
    ".py": PYTHON,
    ".pyi": PYTHON,
    ".ipynb": "notebook",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
    ".toml": "toml",
    ".sh": "shell",
    ".bash": "shell",
    ".slurm": "shell",
    ".sbatch": "shell",
    ".mk": "makefile",
}
_TEMPLATES = (".j2", ".jinja", ".jinja2", ".tmpl", ".gotmpl", ".tpl")
_AS_TEMPLATES = ("yaml", "shell", "dockerfile")
"""Kinds that are read in templates too, of which a name tells before the ending of a template: `job.sh.j2`."""

_BY_NAME = {
    "Pipfile": "toml",
    "setup.cfg": "cfg",
    "Dockerfile": "dockerfile",
    "Containerfile": "dockerfile",
    "Makefile": "makefile",
    "makefile": "makefile",
    "GNUmakefile": "makefile",
}
_REQUIREMENTS = re.compile(r"(?:.*[-_.])?(?:requirements?|constraints)(?:[-_.].*)?\.(?:txt|in)")


_LARGEST = {"json": 200_000, "yaml": 500_000}
"""Bytes: larger files of these kinds are data, and no settings that somebody wrote."""


class Look(NamedTuple):
    """What one look at a file's bytes tells: whether it has to be parsed, and what it says about the run."""

    matches: bool
    facts: Facts


class Unparsed(Exception):
    """Raised by a handler for a text that is not what its name says, as a template is; the file is skipped."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line


class Handler(Protocol):
    """What the run asks of the module of a kind. The texts have `\\n` at every line's end; see `tpuport.source.text`.

    Findings carry spans in the text as given, and come in the order of the text; those that a comment ignores are among
    them, marked. All but `look` may raise SyntaxError for a text that does not parse, and Unparsed.
    """

    def look(self, path: Path, raw: bytes, selection: bool = True) -> Look | None:
        """What the bytes tell at a glance; None for nothing. Without `selection`, nothing about the current device.

        Raises `tpuport.source.text.Unreadable` where bytes of this kind can not be what they are.
        """

    def findings(self, source: str, project: Project, rules: Sequence[Rule]) -> list[Finding]:
        """What `rules` find."""

    def rewrite(
        self, source: str, project: Project, rules: Sequence[Rule], *, unsafe: bool, line_length: int | None
    ) -> Rewritten:
        """The text with all applied that may be: a second run finds nothing more to change."""

    def annotate(self, source: str, findings: Iterable[Finding]) -> str:
        """The text with a comment at each of `findings` that needs a person, where the kind has comments."""

    def moved(self, findings: Sequence[Finding], old: str, new: str) -> tuple[Finding, ...]:
        """`findings` of the text `old` at the places that they have in `new`, as have those that their texts name."""


def of(path: str | os.PathLike[str]) -> str:
    """The kind of a file, by its name alone; empty for one that no run reads unless it is told to."""
    directory, name = os.path.split(path)
    kind = _BY_SUFFIX.get(os.path.splitext(name)[1]) or _BY_NAME.get(name)
    if kind:
        return kind
    inner, ending = os.path.splitext(name)
    if ending in _TEMPLATES:
        kind = of(os.path.join(directory, inner))
        return kind if kind in _AS_TEMPLATES else ""
    if name.startswith(("Dockerfile.", "Dockerfile-", "Dockerfile_")) or name.lower().endswith(".dockerfile"):
        return "dockerfile"
    if name.endswith((".txt", ".in")):
        in_folder = os.path.basename(directory) == "requirements"
        return "requirements" if in_folder or _REQUIREMENTS.fullmatch(name) else ""
    return ""


def is_data(kind: str, size: int) -> bool:
    """Whether a file of that kind and size, in bytes, is none that a search of a directory is after."""
    return size > _LARGEST.get(kind, size)


def names() -> tuple[str, ...]:
    """All kinds."""
    return tuple(dict.fromkeys([*_BY_SUFFIX.values(), *_BY_NAME.values(), "requirements"]))


@cache
def handler(kind: str) -> Handler:
    """Who handles files of that kind."""
    found: Handler = import_module(f"tpuport.kinds.{kind}").HANDLER
    return found


def handler_of(path: Path) -> Handler:
    """Who handles the file: as Python, if its name tells nothing."""
    return handler(of(path) or PYTHON)


def digest(path: Path, raw: bytes) -> bytes:
    """What stands for a file's content: the same text is another one in a file of another kind."""
    own = hashlib.blake2b(raw, digest_size=20)
    kind = of(path) or PYTHON
    if kind != PYTHON:
        own.update(kind.encode())
    return own.digest()
