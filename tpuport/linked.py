"""Files of a run that import one another: what moves in one of them may have to move in all."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tpuport.analysis.xla import AREA
from tpuport.model import Finding, Outcome
from tpuport.settle.together import CHAIN, TOGETHER
from tpuport.source import text

IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]*)|import[ \t]+([^\n#]*))", re.MULTILINE
)
NAME = re.compile(r"[\w.]+")


def held_on_xla(outcomes: Sequence[Outcome]) -> dict[Path, str]:
    """Files that would leave PyTorch/XLA while one they share data with stays, each with the place of what stays.

    Files share data if they import one another, directly or through others.
    """
    staying = {
        outcome.path: f"{outcome.path}:{finding.span.line}"
        for outcome in outcomes
        for finding in reversed(outcome.findings)
        if _stays(finding)
    }
    moving = [o.path for o in outcomes if any(f.edits and f.chain == CHAIN for f in (*o.fixed, *o.findings))]
    if not staying or not moving:
        return {}
    groups = _groups([outcome.path for outcome in outcomes])
    holding: dict[Path, str] = {}
    for path, place in staying.items():
        holding.setdefault(groups[path], place)
    return {path: holding[groups[path]] for path in moving if groups[path] in holding}


def _stays(finding: Finding) -> bool:
    """Whether a finding is what holds its file on PyTorch/XLA."""
    held = finding.rule.startswith(f"{AREA}-") and finding.rule != "xla-frameworks" and not finding.edits
    return held and not finding.reason.startswith(TOGETHER)


@dataclass(frozen=True, slots=True)
class _File:
    """A file of the run, with the names of the folders above it and those that lead to it as a module."""

    path: Path
    folder: tuple[str, ...]
    module: tuple[str, ...]

    @classmethod
    def of(cls, path: Path) -> "_File":
        folder = path.parent.parts
        return cls(path, folder, folder if path.stem == "__init__" else (*folder, path.stem))


def _groups(paths: Sequence[Path]) -> dict[Path, Path]:
    """For each file one file that stands for all that it is linked with."""
    files = [_File.of(path) for path in paths]
    by_name: dict[str, list[_File]] = {}
    for file in files:
        by_name.setdefault(file.module[-1] if file.module else "", []).append(file)
    leader = {path: path for path in paths}

    def find(path: Path) -> Path:
        while leader[path] != path:
            leader[path] = leader[leader[path]]  # so that the way is half as long the next time
            path = leader[path]
        return path

    @cache
    def nearest(folder: tuple[str, ...], name: str) -> list[Path]:
        return _nearest(folder, name, by_name)

    for file in files:
        for name in set(_imported(file.path)):
            for other in nearest(file.folder, name):
                leader[find(other)] = find(file.path)
    return {path: find(path) for path in paths}


def _imported(path: Path) -> Iterator[str]:
    """Every dotted name that a file may import as a module."""
    try:
        source = text.decode(text.read_bytes(path), path).text
    except text.Unreadable:
        return
    for found in _imports(source):
        package, names, modules = (part or "" for part in found.groups())
        package = package.lstrip(".")
        if package:
            yield package
        for name in NAME.findall(names):
            yield f"{package}.{name}".lstrip(".")
        yield from NAME.findall(modules)


def _imports(source: str) -> Iterator[re.Match[str]]:
    """As `IMPORT.finditer`, which would look at the beginning of every line."""
    end = 0
    while (word := source.find("import", end)) >= 0:
        line = source.rfind("\n", 0, word) + 1
        found = IMPORT.match(source, line) if line >= end else None
        if found is not None:
            yield found
        end = found.end() if found is not None else word + len("import")


def _nearest(folder: tuple[str, ...], name: str, by_name: dict[str, list[_File]]) -> list[Path]:
    """The files that a module name may mean in a file of `folder`, those nearest to it."""
    parts = tuple(name.split("."))
    fitting = [other for other in by_name.get(parts[-1], ()) if other.module[-len(parts) :] == parts]
    nearness = [_shared(folder, other.folder) for other in fitting]
    return [other.path for other, near in zip(fitting, nearness, strict=True) if near == max(nearness)]


def _shared(folder: tuple[str, ...], other: tuple[str, ...]) -> int:
    """How many folders two places have in common."""
    pairs = zip(folder, other, strict=False)
    return next((n for n, (left, right) in enumerate(pairs) if left != right), len(folder))
