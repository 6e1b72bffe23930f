"""Packages that are asked for, in the notations of pip, Poetry and conda."""

import re
from collections.abc import Iterator

from tpuport.analysis.libraries import STAND_INS
from tpuport.kinds.document import Command, Document, Requirement, Word
from tpuport.model import Span

_LIBRARIES = sorted({name.lower() for name in STAND_INS if "." not in name})
WORDS = (
    *(b"torch", b"cu1", b"cuda", b"nvidia", b"numpy", b"-gpu", b"cudf", b"cuml", b"cugraph"),
    *dict.fromkeys(word.encode() for name in _LIBRARIES for word in (name, name.replace("_", "-"))),
)
"""Without one of them, in lower case, nothing is asked for that a rule is about."""

_NAME = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(\[[^\]]*\])?\s*")
_WHEEL = re.compile(r"([\w.]{1,100})-(\d[^-]{0,100})-.*\.whl|([\w.-]{1,100}?)-(\d.{0,100})\.tar\.gz")
_REPOSITORY = re.compile(r"git\+[^#]*/([\w.-]+?)(?:\.git)?(?:@[^#/]*)?(?:#.*)?")
_EGG = re.compile(r"#egg=([\w.-]+)")
_SPECIFIER = re.compile(r"(?:(?:===|==|~=|!=|<=|>=|<|>)\s*[\w.*+!-]+\s*,?\s*)*")
INDEX_OPTIONS = ("-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--index")
_TAKE_VALUE = (
    *("-r", "--requirement", "-c", "--constraint", "-t", "--target", "-n", "--name", "-p", "--prefix", "--channel"),
    *("--root", "--python", "--timeout", "--trusted-host", "--cache-dir", "--no-binary", "--only-binary", "--src"),
    *("--config-settings", "--global-option", "--install-option", "--progress-bar", "--file"),
)
"""Options whose values are no packages."""

_PIP = {"pip", "pip3", "uv"}
_CONDA = {"conda", "mamba", "micromamba"}


def normalized(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirement(text: str, span: Span, *, optional: bool = False) -> Requirement | None:
    """What a requirement in pip's notation asks for; None for what is none."""
    text, _, marker = text.partition(" ;") if " ;" in text else text.partition(";")
    text = text.strip()
    if re.match(r"(git\+|https?://|file:)", text):
        return _by_address(text, text, span, marker.strip(), optional)
    name = _NAME.match(text)
    if name is None:
        return None
    rest = text[name.end() :].strip().strip("()")
    if rest.startswith("@"):
        address = rest[1:].strip()
        by = _by_address(address, address, span, marker.strip(), optional)
        specifier = by.specifier if by else ""
        return Requirement(normalized(name[1]), specifier, span, address, marker.strip(), optional=optional)
    versions = _SPECIFIER.match(rest)
    if versions is None or (rest and not versions[0]):
        return None
    return Requirement(normalized(name[1]), _tidy(versions[0]), span, "", marker.strip(), optional=optional)


def _tidy(specifier: str) -> str:
    return re.sub(r"\s+", "", specifier).strip(",")


def _by_address(text: str, address: str, span: Span, marker: str, optional: bool) -> Requirement | None:
    address = address.replace("%2B", "+").replace("%2b", "+")
    egg = _EGG.search(address)
    wheel = _WHEEL.fullmatch(address.partition("#")[0].rpartition("/")[2])
    repository = _REPOSITORY.fullmatch(address)
    name = (
        egg[1] if egg else (wheel[1] or wheel[3]).rpartition("/")[2] if wheel else repository[1] if repository else ""
    )
    version = (wheel[2] or wheel[4] or "") if wheel else ""
    if not name:
        return None
    return Requirement(normalized(name), f"=={version}" if version else "", span, text, marker, optional=optional)


def poetry(name: str, version: str, span: Span, *, optional: bool = False) -> Requirement:
    """What Poetry and Pipenv ask for: `^` and `~` and bare versions are ranges."""
    return Requirement(normalized(name), poetry_specifier(version), span, optional=optional)


def poetry_specifier(version: str) -> str:
    """A range in Poetry's notation as Python's own specifiers; of alternatives, nothing."""
    version = version.strip()
    if version in ("", "*") or "||" in version or "|" in version:
        return ""
    parts = [part for part in re.split(r"\s*,\s*|\s+(?=[<>=!~^\d])", version) if part]
    return ",".join(filter(None, map(_poetry_part, parts)))


def _poetry_part(part: str) -> str:
    caret = re.fullmatch(r"([\^~])\s*(\d+)(?:\.(\d+))?(?:\.(\d+))?", part)
    if caret:
        major, minor = int(caret[2]), int(caret[3] or 0)
        floor = ".".join(number for number in caret.groups()[1:] if number)
        if caret[1] == "^":
            next_one = f"{major + 1}" if major or not caret[3] else f"0.{minor + 1}"
        else:
            next_one = f"{major}.{minor + 1}" if caret[3] else f"{major + 1}"
        return f">={floor},<{next_one}"
    if re.fullmatch(r"\d[\w.]*(\.\*)?", part):
        return f"=={part}"
    return _tidy(part) if _SPECIFIER.fullmatch(part) else ""


def conda(text: str, span: Span) -> Requirement | None:
    """What a line of a conda environment asks for: `name=version=build`, where `=` is a prefix of the version."""
    text = re.sub(r"^[\w./-]+::", "", text.strip())
    name, rest = re.match(r"([\w.-]*)\s*(.*)", text).groups()  # type: ignore[union-attr]
    if not name:
        return None
    if rest[:1] in ("<", ">", "!", "~") or rest.startswith("=="):
        version, _, build = rest.partition(" ")
        return Requirement(normalized(name), _tidy(version), span, build=build)
    version, _, build = rest.lstrip("=").partition("=")
    version = version.strip()
    if not version or version == "*":
        return Requirement(normalized(name), "", span, build=build)
    exact = build or version.endswith("*")
    return Requirement(normalized(name), f"=={version}" if exact else f"=={version}.*", span, build=build)


def add(document: Document, one: Requirement) -> None:
    """Add a requirement, or for conda's `python` the range of interpreters."""
    if one.name == "python":
        document.interpreters.append(Word(one.specifier, one.span))
    else:
        document.requirements.append(one)


def line(document: Document, text: str, span: Span) -> None:
    """Add what one line of a requirements file asks for."""
    if text.startswith("-"):
        name, _, value = re.split(r"(=|\s+)", text, maxsplit=1) if re.search(r"[=\s]", text) else (text, "", "")
        if name in INDEX_OPTIONS:
            document.indexes.append(Word(value.strip().strip("\"'"), span))
        elif name in ("-e", "--editable") and (found := requirement(value.strip(), span)):
            document.requirements.append(found)
        return
    text = re.split(r"\s+--", text, maxsplit=1)[0].rstrip(" \\")
    if found := requirement(text, span):
        document.requirements.append(found)


def from_command(document: Document, command: Command) -> None:
    """Add what a command of pip, uv or conda installs."""
    words = command.words
    texts = [word.text for word in words]
    names = [text.rpartition("/")[2] for text in texts]
    program = next((number for number, name in enumerate(names) if name in _PIP or name in _CONDA), None)
    if program is None:
        return
    verb = next((number for number in range(program, len(texts)) if texts[number] in ("install", "create")), None)
    if verb is None:
        return
    is_conda = names[program] in _CONDA
    skip = False
    for number in range(verb + 1, len(words)):
        word = words[number]
        if skip:
            skip = False
            continue
        name, equals, value = word.text.partition("=")
        if word.text.startswith("-"):
            if name in INDEX_OPTIONS and not is_conda:
                given = words[number + 1] if not equals and number + 1 < len(words) else Word(value, word.span)
                document.indexes.append(given)
            skip = not equals and name in (*INDEX_OPTIONS, *_TAKE_VALUE)
        elif "$" not in word.text:
            one = conda(word.text, word.span) if is_conda else requirement(word.text, word.span)
            if one:
                add(document, one)


def wanted(document: Document) -> Iterator[Requirement]:
    """The requirements that hold on a TPU host: on Linux, with a Python that torch_tpu takes."""
    for one in document.requirements:
        if _holds(one.marker):
            yield one


def _holds(marker: str) -> bool:
    if not marker:
        return True
    from packaging.markers import InvalidMarker, Marker

    try:
        evaluated = Marker(re.sub(r"""extra\s*==\s*(['"]).*?\1""", "python_version > '3'", marker))
        return evaluated.evaluate(
            {
                "sys_platform": "linux",
                "platform_system": "Linux",
                "platform_machine": "x86_64",
                "os_name": "posix",
                "python_version": "3.12",
                "python_full_version": "3.12.0",
                "implementation_name": "cpython",
                "platform_python_implementation": "CPython",
                "extra": "",
            }
        )
    except InvalidMarker:
        return True


def admits_any(specifier: str, releases: tuple[str, ...], bounds: str = "") -> bool:
    """Whether one of `releases`, or a patch of it within `bounds`, meets the specifier; true for what can't be read."""
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    try:
        admitted = SpecifierSet(re.sub(r"\+[\w.]+", "", specifier)) & SpecifierSet(bounds)
        named = [Version(text) for text in re.findall(r"\d+(?:\.\d+)*", re.sub(r"\+[\w.]+", "", specifier))]
        candidates = [*releases, *(f"{release}.{patch}" for release in releases for patch in range(6))]
        near = [str(version) for version in named if f"{version.major}.{version.minor}" in releases]
        return any(admitted.contains(version, prereleases=True) for version in (*candidates, *near))
    except ValueError:  # no specifier, no version, or numbers of thousands of digits
        return True
