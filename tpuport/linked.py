"""Files of a run that import one another: what moves in one of them may have to move in all."""

import re
from collections.abc import Iterator, Sequence
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


def _groups(paths: Sequence[Path]) -> dict[Path, Path]:
    """For each file one file that stands for all that it is linked with."""
    by_name: dict[str, list[Path]] = {}
    for path in paths:
        by_name.setdefault(path.parent.name if path.stem == "__init__" else path.stem, []).append(path)
    leader = {path: path for path in paths}

    def find(path: Path) -> Path:
        while leader[path] != path:
            leader[path] = leader[leader[path]]  # so that the way is half as long the next time
            path = leader[path]
        return path

    for path in paths:
        for name in set(_imported(path)):
            for other in _nearest(path, name, by_name):
                leader[find(other)] = find(path)
    return {path: find(path) for path in paths}


def _imported(path: Path) -> Iterator[str]:
    """Every dotted name that a file may import as a module."""
    try:
        source = text.decode(text.read_bytes(path), path).text
    except text.Unreadable:
        return
    for found in IMPORT.finditer(source):
        package, names, modules = (part or "" for part in found.groups())
        package = package.lstrip(".")
        if package:
            yield package
        for name in NAME.findall(names):
            yield f"{package}.{name}".lstrip(".")
        yield from NAME.findall(modules)


def _nearest(path: Path, name: str, by_name: dict[str, list[Path]]) -> list[Path]:
    """The files that a module name may mean, those nearest to the file that imports it."""
    parts = name.split(".")
    fitting = [other for other in by_name.get(parts[-1], ()) if _module_parts(other)[-len(parts) :] == parts]
    nearness = [_shared(path, other) for other in fitting]
    return [other for other, near in zip(fitting, nearness, strict=True) if near == max(nearness)]


def _module_parts(path: Path) -> list[str]:
    return list(path.parent.parts if path.stem == "__init__" else path.with_suffix("").parts)


def _shared(path: Path, other: Path) -> int:
    """How many folders two files have in common."""
    pairs = zip(path.parent.parts, other.parent.parts, strict=False)
    return next((n for n, (left, right) in enumerate(pairs) if left != right), len(path.parent.parts))
