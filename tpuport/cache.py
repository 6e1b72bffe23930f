"""What was found in a text before: by the text's digest, so that neither times nor names of files matter.

One file for each project and state of tpuport's own code, replaced as a whole: of two runs at a time the later one
adds to what the earlier one wrote, and a reader sees the one file or the other.
"""

import contextlib
import os
import pickle
import platform
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import tpuport
from tpuport import kinds
from tpuport.catalog import rules_directory
from tpuport.kinds import Look
from tpuport.model import Finding, Outcome, Project, Rule, Status
from tpuport.source.text import digest

_RUNS = 4
"""Kinds of run (rules, oldest torch and so on) of which results are kept."""

_ENTRIES = 100_000
"""Texts of which results are kept, for each kind of run; beyond that, only those that the last run met."""

_UNUSED_FOR = 30 * 24 * 3600
"""Seconds after which a file in the cache's directory that nothing used is removed."""

_KEPT = (Status.UNCHANGED, Status.FINDINGS)
"""Outcomes that depend on the text alone, and not on the time or memory that was there."""


class Entry(NamedTuple):
    """What one text came to."""

    status: Status
    findings: tuple[Finding, ...]
    ignored: tuple[Finding, ...]


@dataclass(slots=True)
class _Content:
    """What a cache file holds: looks by digest, None for a text that tells nothing; and entries by kind of run."""

    looks: dict[bytes, Look | None] = field(default_factory=dict)
    runs: dict[bytes, dict[bytes, Entry]] = field(default_factory=dict)


class Cache:
    """The cache of one project, as it was when the run began, and what the run adds."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._content = _read(file)
        self._new = _Content()
        self._met: set[bytes] = set()
        self._of: dict[Path, bytes] = {}
        self._run = b""
        self._held = b""

    def begin(self, rules: Iterable[Rule], project: Project) -> None:
        """Say what kind of run this is: entries of others do not count, nor of files that others hold back."""
        held = project.needs_cuda, project.stays_on_xla
        alone = replace(project, needs_cuda=(), stays_on_xla="")
        self._run = digest(repr((sorted(map(repr, rules)), alone)).encode(errors="surrogatepass"))
        self._held = digest(repr(held).encode(errors="surrogatepass")) if any(held) else b""

    def known_look(self, path: Path, raw: bytes) -> tuple[bool, Look | None]:
        """Whether the text is known, and what a look at it told."""
        key = kinds.digest(path, raw)
        self.meet(path, key)
        return key in self._content.looks, self._content.looks.get(key)

    @property
    def is_new(self) -> bool:
        """Whether it knows no text yet."""
        return not self._content.looks

    def meet(self, path: Path, key: bytes) -> None:
        """Take note of the text, by its digest, that a file of the run holds."""
        self._of[path] = key
        self._met.add(key)

    def add_look(self, path: Path, look: Look | None) -> None:
        """Remember what a look at the text told that a file was met with."""
        self._new.looks[self._of[path]] = look

    def outcome(self, path: Path, without: frozenset[str]) -> Outcome | None:
        """What the text came to before with the rules of this run, less `without`; None if that is not known."""
        key = self._of.get(path)
        entry = self._content.runs.get(self._run, {}).get(self._key(key, without)) if key else None
        return Outcome(path, entry.status, findings=entry.findings, ignored=entry.ignored) if entry else None

    def add(self, outcome: Outcome, without: frozenset[str]) -> None:
        """Remember an outcome by the text that it is of."""
        if outcome.status in _KEPT and outcome.digest:
            entry = Entry(outcome.status, outcome.findings, outcome.ignored)
            self._new.runs.setdefault(self._run, {})[self._key(outcome.digest, without)] = entry

    def _key(self, own: bytes, without: frozenset[str]) -> bytes:
        return own + self._held + ",".join(sorted(without)).encode()

    def save(self) -> None:
        """Write what is new, beside what the file holds by now. A cache that can't be written is no failure."""
        if not self._new.looks and not self._new.runs:
            with contextlib.suppress(OSError):
                os.utime(self._file)
            return
        content = _read(self._file)
        content.looks = self._trimmed({**content.looks, **self._new.looks})
        for run, entries in self._new.runs.items():
            content.runs[run] = self._trimmed({**content.runs.pop(run, {}), **entries})
        while len(content.runs) > _RUNS:
            content.runs.pop(next(iter(content.runs)))
        with contextlib.suppress(OSError):
            _write(self._file, pickle.dumps((content.looks, content.runs), protocol=5))
            _tidy(self._file.parent)

    def _trimmed(self, entries: dict[bytes, Any]) -> dict[bytes, Any]:
        if len(entries) <= _ENTRIES:
            return entries
        return {key: entry for key, entry in entries.items() if key[:20] in self._met}


def open_for(root: Path) -> Cache:
    """The cache of the project at `root`, empty where there is none yet."""
    name = digest(os.path.realpath(root).encode(errors="surrogateescape") + _state())
    return Cache(directory() / f"{name.hex()}.pickle")


def directory() -> Path:
    """Where caches lie: $TPUPORT_CACHE_DIR, else the platform's place for them."""
    own = os.environ.get("TPUPORT_CACHE_DIR")
    if own:
        return Path(own)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/AppData/Local")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "tpuport"


@cache
def _state() -> bytes:
    """A digest of what the results depend on beside the text: Python, and tpuport's own code and rules."""
    package = Path(__file__).parent
    files = sorted([*package.rglob("*.py"), *rules_directory().rglob("*.toml")])
    stats = [(str(file), (status := file.stat()).st_size, status.st_mtime_ns) for file in files]
    return digest(repr((tpuport.__version__, platform.python_version(), sys.implementation.name, stats)).encode())


_MODULES = ("tpuport.model", "tpuport.kinds", __name__)


class _Unpickler(pickle.Unpickler):
    """Makes the model's own types and nothing else, whatever the file says."""

    def find_class(self, module: str, name: str) -> Any:
        """The class of that name, if it is one that a cache holds."""
        if (module, name) == ("builtins", "getattr"):
            return _member  # the first releases of Python 3.11 pickle a member of an enum so
        if module in _MODULES and name.isidentifier():
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module:
                return found
        raise pickle.UnpicklingError(f"{module}.{name} does not belong into a cache")


def _member(owner: Any, name: str) -> Enum:
    if isinstance(owner, type) and issubclass(owner, Enum):
        return owner[name]
    raise pickle.UnpicklingError(f"{owner!r} is no enum")


def _read(file: Path) -> _Content:
    try:
        with file.open("rb") as stream:
            looks, runs = _Unpickler(stream).load()
        if isinstance(looks, dict) and isinstance(runs, dict):
            return _Content(looks, runs)
    except FileNotFoundError:
        pass
    except Exception:  # noqa: BLE001 - whatever is wrong with the file, it is as if there were none
        with contextlib.suppress(OSError):
            file.unlink()
    return _Content()


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=file.parent, suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        os.replace(name, file)
    except BaseException:
        os.unlink(name)
        raise


def _tidy(folder: Path) -> None:
    """Remove what other projects or older versions of tpuport left behind long ago."""
    oldest = time.time() - _UNUSED_FOR
    for file in folder.iterdir():
        if file.suffix in (".pickle", ".tmp") and file.stat().st_mtime < oldest:
            file.unlink()
