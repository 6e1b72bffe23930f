"""The oldest torch that a project says it runs on, read from its own declarations without executing any of them."""

import ast
import os
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tpuport import torch_tpu
from tpuport.errors import UsageError

NEWEST = torch_tpu.TORCH_RELEASES[0]
"""The floor of a project that states none: the oldest torch that torch_tpu accepts."""

ENOUGH = "2.6"
"""From here on `torch.accelerator` exists, and most of the rules can rewrite."""

HELD = "the fix needs torch"
"""How the reason of a finding begins, or goes on, which the floor alone holds back."""

_RELEASED = [f"1.{minor}" for minor in range(14)] + [f"2.{minor}" for minor in range(14)]
_REQUIREMENT = re.compile(
    r"""^[\s\-"']*(?:py)?torch\s*(?:\[[^\]]*\])?\s*
    (?:(?P<spec>[<>=!~(].*) | @\s*(?P<url>\S+) | = | :)?\s*$""",
    re.VERBOSE | re.IGNORECASE,
)
_CLAUSE = re.compile(r"(===|==|~=|!=|<=|>=|<|>|=)\s*([0-9][0-9A-Za-z.*+!_-]*)")
_WHEEL = re.compile(r"/torch-(\d+(?:\.\d+)*)")


@dataclass(frozen=True, slots=True)
class Floor:
    """A version as written, and where it stands: `requirements.txt:3`."""

    version: str
    source: str


def checked(version: str, option: str) -> str:
    """`version` if it is a plain release number such as 2.6 or 2.6.1. Raises UsageError naming `option` otherwise."""
    if not re.fullmatch(r"\d+\.\d+(\.\d+)?", version):
        hint = "valid: a release number such as 2.6 or 2.11"
        raise UsageError(f"{option}: {version!r} is not a torch version", hint=hint)
    return version


def older(version: str, other: str) -> bool:
    """Whether release number `version` comes before `other`."""
    return _numbers(version) < _numbers(other)


def nearest(directories: Iterable[Path], root: Path) -> Floor | None:
    """What the first of `directories` that says anything of torch declares; its source is relative to `root`."""
    return next((floor for directory in directories if (floor := find(directory, root))), None)


def find(directory: Path, root: Path) -> Floor | None:
    """The lowest torch that the project at `directory` declares to run on, or None where it states none.

    Package metadata (pyproject.toml, setup.cfg, setup.py) decides; without it requirement and environment files do.
    """
    for tier in (_metadata, _environments):
        floors = [
            Floor(version, f"{os.path.relpath(file, root)}:{line}")
            for file, line, specifier in tier(directory)
            if (version := lowest(specifier))
        ]
        if floors:
            return min(floors, key=lambda floor: _numbers(floor.version))
    return None


def lowest(specifier: str) -> str | None:
    """The lowest torch release that `specifier` admits, or None where it rules out no old one, or can't be read."""
    found = _CLAUSE.findall(specifier.split(";")[0].split("#")[0])
    clauses = [("==" if operator == "=" else operator, version.split("+")[0]) for operator, version in found]
    if not clauses:
        return None
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version

    try:
        admitted = SpecifierSet(",".join(op + version for op, version in clauses))
        bounds = {version.removesuffix(".*") for op, version in clauses if op not in ("!=", "<", ">")}
        after = {_next(version) for op, version in clauses if op == ">"}
        candidates = sorted({Version(text) for text in (*_RELEASED, *bounds, *after)})
        fitting = [version for version in candidates if admitted.contains(version, prereleases=True)]
    except (InvalidSpecifier, InvalidVersion):
        return None
    # Only an upper bound, and one that the newest release meets: nothing is said about old ones.
    unbounded_below = all(op in ("!=", "<", "<=") for op, _ in clauses)
    if not fitting or (unbounded_below and admitted.contains(NEWEST)):
        return None
    return _short(fitting[0].release)


def _next(version: str) -> str:
    """The first release after `version`, which `>` leaves out: 2.0.1 after 2.0."""
    numbers = [int(number) for number in re.findall(r"\d+", version)]
    while len(numbers) < 3:
        numbers.append(0)
    numbers[2] += 1
    return ".".join(map(str, numbers[:3]))


def _short(release: tuple[int, ...]) -> str:
    numbers = list(release[:3])
    while len(numbers) < 2:
        numbers.append(0)
    if len(numbers) == 3 and numbers[2] == 0:
        numbers.pop()
    return ".".join(map(str, numbers))


def _numbers(version: str) -> tuple[int, ...]:
    numbers = [int(number) for number in version.split(".")]
    return tuple(numbers + [0] * (3 - len(numbers)))


def _metadata(root: Path) -> Iterator[tuple[Path, int, str]]:
    yield from _pyproject(root / "pyproject.toml")
    yield from _lines(root / "setup.cfg")
    yield from _setup_py(root / "setup.py")


def _environments(root: Path) -> Iterator[tuple[Path, int, str]]:
    patterns = ("requirements*.txt", "requirements/*.txt", "requirements*.in", "environment*.yml", "environment*.yaml")
    for pattern in patterns:
        for file in sorted(root.glob(pattern)):
            yield from _lines(file)


def _lines(file: Path) -> Iterator[tuple[Path, int, str]]:
    for number, line in enumerate(_text(file).splitlines(), 1):
        specifier = _specifier(line)
        if specifier:
            yield file, number, specifier


def _specifier(requirement: str) -> str:
    """The version part of a requirement on torch, or nothing."""
    found = _REQUIREMENT.match(requirement.split("#")[0].split(";")[0].rstrip(" \t\"',\\"))
    if not found:
        return ""
    if found["url"]:
        wheel = _WHEEL.search(found["url"])
        return f"=={wheel[1]}" if wheel else ""
    return found["spec"] or ""


def _setup_py(file: Path) -> Iterator[tuple[Path, int, str]]:
    text = _text(file)
    if "torch" not in text:
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            specifier = _specifier(node.value)
            if specifier:
                yield file, node.lineno, specifier


def _pyproject(file: Path) -> Iterator[tuple[Path, int, str]]:
    text = _text(file)
    if "torch" not in text:
        return
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    declared = _below(tables, "project", "dependencies")
    for requirement in declared if isinstance(declared, list) else ():
        if isinstance(requirement, str) and (specifier := _specifier(requirement)):
            yield file, _line_of(text, requirement), specifier
    torch = _below(tables, "tool", "poetry", "dependencies", "torch")
    version = torch.get("version") if isinstance(torch, dict) else torch
    if isinstance(version, str):
        yield file, _line_of(text, version), _from_poetry(version)


def _below(table: object, *keys: str) -> object:
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return table


def _from_poetry(version: str) -> str:
    """Poetry's caret, tilde and bare versions as an ordinary lower bound."""
    version = version.strip()
    if version[:1] in "^~" and not version.startswith("~="):
        return ">=" + version[1:].strip()
    return "==" + version if version[:1].isdigit() else version


def _line_of(text: str, part: str) -> int:
    at = text.find(part)
    return text.count("\n", 0, max(at, 0)) + 1


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return ""
