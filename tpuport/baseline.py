"""The baseline: findings that were there when a team began to lint, kept in a file so that only new ones are shown.

An entry is a rule, the class or function, the source line's text and how often they occur together in the file: it
stays valid when lines move. File names are relative to the baseline's own directory.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tpuport.errors import ConfigError, UsageError
from tpuport.fingerprint import Mark, mark
from tpuport.model import Finding, Outcome, Status

VERSION = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """Findings of one file that share a mark."""

    file: str
    mark: Mark
    count: int


@dataclass(frozen=True, slots=True)
class Compared:
    """A run held against a baseline: the outcomes without the known findings, and the entries that were not met."""

    outcomes: tuple[Outcome, ...]
    known: int
    stale: tuple[Entry, ...]


class Baseline:
    """The content of one baseline file."""

    def __init__(self, path: Path, entries: Iterable[Entry] = ()) -> None:
        self._directory = Path(os.path.abspath(path)).parent
        self._marks: dict[str, Counter[Mark]] = {}
        for entry in entries:
            self._marks.setdefault(entry.file, Counter())[entry.mark] += entry.count

    def compare(self, outcomes: Sequence[Outcome], codes: frozenset[str]) -> Compared:
        """Take the known findings out of `outcomes`; only entries of `codes`, the rules of the run, can be stale."""
        left: dict[str, Counter[Mark]] = {}
        compared = []
        known = 0
        for outcome in outcomes:
            name = self._name(outcome.path)
            if outcome.status in (Status.FAILED, Status.SKIPPED) or name not in self._marks:
                compared.append(outcome)
                continue
            left[name] = self._marks[name].copy()
            new = tuple(finding for finding in outcome.findings if not _take(left[name], finding))
            known += len(outcome.findings) - len(new)
            compared.append(without(outcome, new))
        for name in self._marks:
            if name not in left and not os.path.lexists(self._directory / name):
                left[name] = self._marks[name]
        stale = tuple(entry for entry in _entries(left) if entry.mark.code in codes)
        return Compared(tuple(compared), known, stale)

    def renewed(self, outcomes: Sequence[Outcome], codes: frozenset[str]) -> Iterator[Entry]:
        """The entries of a baseline after this run: what it looked at is replaced, all else is kept."""
        marks = {name: kept for name, kept in self._marks.items() if os.path.lexists(self._directory / name)}
        for outcome in outcomes:
            if outcome.status not in (Status.FAILED, Status.SKIPPED):
                name = self._name(outcome.path)
                others = {own: count for own, count in marks.get(name, Counter()).items() if own.code not in codes}
                marks[name] = Counter(others) + Counter(map(mark, outcome.findings))
        return _entries(marks)

    def _name(self, path: Path) -> str:
        return Path(os.path.relpath(os.path.abspath(path), self._directory)).as_posix()


def without(outcome: Outcome, findings: tuple[Finding, ...]) -> Outcome:
    """`outcome` with only `findings` left."""
    if len(findings) == len(outcome.findings):
        return outcome
    return replace(outcome, findings=findings, status=Status.FINDINGS if findings else Status.UNCHANGED)


def _take(marks: Counter[Mark], finding: Finding) -> bool:
    own = mark(finding)
    if not marks[own]:
        return False
    marks[own] -= 1
    return True


def _entries(marks: dict[str, Counter[Mark]]) -> Iterator[Entry]:
    for name in sorted(marks):
        for own in sorted(marks[name]):
            if marks[name][own] > 0:
                yield Entry(name, own, marks[name][own])


def read(path: Path) -> Baseline:
    """Read a baseline file. Raises UsageError where there is none, and ConfigError for one that is not right."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(
            f"there is no baseline {path}", hint="make one from what is found today with --write-baseline"
        ) from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: not a readable baseline: {error}", hint="write it anew: --write-baseline") from None
    try:
        if content["version"] != VERSION:
            raise ConfigError(
                f"{path}: version {content['version']!r} of the baseline's format, where this tpuport knows {VERSION}"
            )
        return Baseline(path, [_entry(name, raw) for name, all_ in content["files"].items() for raw in all_])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ConfigError(f"{path}: not a baseline of tpuport", hint="write it anew: --write-baseline") from None


def _entry(name: str, raw: dict[str, Any]) -> Entry:
    code, scope, line, count = raw["code"], raw["scope"], raw["line"], raw["count"]
    if not all(isinstance(text, str) for text in (code, scope, line)) or type(count) is not int:
        raise TypeError
    return Entry(name, Mark(code, scope, line), count)


def content(entries: Iterable[Entry]) -> bytes:
    """The text of a baseline file: an entry a line, so that version control merges it well."""
    files: dict[str, list[str]] = {}
    for entry in entries:
        raw = {**entry.mark._asdict(), "count": entry.count}
        files.setdefault(entry.file, []).append(f"      {json.dumps(raw)}")
    blocks = ",\n".join(f"    {json.dumps(name)}: [\n" + ",\n".join(lines) + "\n    ]" for name, lines in files.items())
    body = f"{{\n{blocks}\n  }}" if blocks else "{}"
    return f'{{\n  "version": {VERSION},\n  "files": {body}\n}}\n'.encode()
