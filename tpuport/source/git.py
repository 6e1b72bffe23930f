"""What git knows of the files that are about to change: whether each of them can be got back."""

import os
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tpuport.errors import TpuportError

_INHERITED = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
"""Set by git for its hooks; they would point `git -C` at another repository than the one asked about."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How the files stand with git: `modified` and `untracked` would lose work, `outside` are in no repository."""

    modified: tuple[Path, ...] = ()
    untracked: tuple[Path, ...] = ()
    outside: tuple[Path, ...] = ()
    git_missing: bool = False


def standing(files: Iterable[Path]) -> Standing:
    """Ask git about `files`. Without a git executable all of them count as outside of any repository.

    Raises TpuportError if git refuses to answer for a repository.
    """
    modified: list[Path] = []
    untracked: list[Path] = []
    outside: list[Path] = []
    by_repository: dict[Path | None, list[tuple[Path, str]]] = {}
    tops: dict[Path, Path | None] = {}
    for file in files:
        real = Path(os.path.realpath(file))
        top = tops.setdefault(real.parent, find_top(real.parent))
        by_repository.setdefault(top, []).append((file, str(real)))
    git_missing = False
    for top, members in by_repository.items():
        if top is None:
            outside.extend(file for file, _ in members)
            continue
        try:
            tracked = {os.path.join(top, name) for name in _git(top, "ls-files", "-z")}
            dirty = {os.path.join(top, name) for name in _dirty(top)}
        except FileNotFoundError:
            git_missing = True
            outside.extend(file for file, _ in members)
            continue
        untracked.extend(file for file, real in members if real not in tracked)
        modified.extend(file for file, real in members if real in tracked and real in dirty)
    return Standing(tuple(modified), tuple(untracked), tuple(outside), git_missing)


def find_top(directory: Path) -> Path | None:
    """The nearest directory at or above `directory` that holds `.git`, or None."""
    for candidate in (directory, *directory.parents):
        if (candidate / ".git").exists():
            return candidate
    return None


def _dirty(top: Path) -> Iterator[str]:
    entries = iter(_git(top, "status", "--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=all"))
    for entry in entries:
        code, name = entry[:2], entry[3:]
        yield name
        if "R" in code or "C" in code:
            next(entries, None)  # where it came from


def _git(top: Path, *arguments: str) -> list[str]:
    return [os.fsdecode(name) for name in output(top, *arguments).split(b"\0") if name]


def output(top: Path, *arguments: str) -> bytes:
    """What git prints. Raises TpuportError if it fails, and FileNotFoundError where it is not installed."""
    environment = {key: value for key, value in os.environ.items() if key not in _INHERITED}
    # A file-system monitor is a program that the repository's own configuration names: never start it.
    settings = ("-c", "core.fsmonitor=false", "-c", "core.quotePath=false")
    command = ["git", *settings, "--no-optional-locks", "-C", str(top), *arguments]
    done = subprocess.run(command, capture_output=True, env=environment, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise TpuportError(
            f"git {arguments[0]} failed in {top}: {said}",
            hint="make git work there, or pass --allow-dirty to write without its safety net",
        )
    return done.stdout
