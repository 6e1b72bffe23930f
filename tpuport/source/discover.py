"""Find the files that a run is about, in a fixed order, each once."""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tpuport import kinds
from tpuport.errors import UsageError
from tpuport.model import Outcome, Status
from tpuport.source.git import find_top

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

Ignores: TypeAlias = "list[tuple[str, GitIgnoreSpec]]"

NOT_MIGRATED = {
    ".cu": "CUDA kernel source: it has to be replaced by PyTorch operators or a Pallas kernel by hand",
    ".cuh": "CUDA kernel source: it has to be replaced by PyTorch operators or a Pallas kernel by hand",
}
"""Suffixes that are named in the outcome, so that nothing which a port has to deal with goes unmentioned."""

EXCLUDED = frozenset(
    [
        ".git",
        ".hg",
        ".svn",
        ".bzr",
        ".venv",
        "venv",
        ".env",
        "env",
        "virtualenv",
        ".tox",
        ".nox",
        ".direnv",
        ".eggs",
        "eggs",
        "__pypackages__",
        "__pycache__",
        "node_modules",
        "site-packages",
        "dist-packages",
        "build",
        "dist",
        "buck-out",
        "_build",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".pytype",
        ".hypothesis",
        ".ipynb_checkpoints",
        ".vscode",
        ".idea",
    ]
)
"""Directory names that are not entered, unless one of them is given as PATH."""


def discover(
    paths: Sequence[Path], root: Path, exclude: Sequence[str] = (), *, force: bool = False
) -> list[Path | Outcome]:
    """Files to read, and Outcomes of what is named but not read, below `paths`.

    A file that is given as such is taken, whatever is excluded, unless `force`; directories are searched for files of
    the kinds in `tpuport.kinds`, and for programs without a suffix whose first line names Python, that their
    .gitignore files, `EXCLUDED` and `exclude` (gitignore patterns relative to `root`) leave. Symbolic links are
    followed only inside `root` or the PATH they were found under. Raises UsageError
    for a path that does not exist, or where there is nothing to read.
    """
    missing = [path for path in paths if not os.path.lexists(path)]
    if missing:
        raise UsageError(
            f"no such file or directory: {', '.join(map(str, missing))}",
            hint="give files or directories that exist, relative to the current directory",
        )
    found: list[Path | Outcome] = []
    seen: set[str] = set()
    real_folder = cache(os.path.realpath)
    if force:
        paths = [path for path in paths if not is_excluded(path, root, exclude)]
    for path in paths:
        top = Path(os.path.realpath(root))
        walk = _Walk(top, _excluder(top, exclude))
        candidates = list(walk.directory(path) if path.is_dir() else walk.given_file(path))
        alone = len(paths) == 1 and not walk.links
        # Links last, so that a file is known by its own name rather than by a link to it.
        for item in sorted(candidates, key=lambda item: (_path(item) in walk.links, _path(item).parts)):
            real = str(_path(item))
            if not alone and (_path(item) in walk.links or not path.is_dir()):
                real = os.path.realpath(real)
            elif not alone:
                folder, name = os.path.split(real)
                real = os.path.join(real_folder(folder), name)
            if real not in seen:
                seen.add(real)
                found.append(item)
    if paths and not any(isinstance(item, Path) or item.status is Status.FAILED for item in found):
        _nothing(paths, found)
    return found


def is_excluded(path: Path, root: Path, exclude: Sequence[str] = ()) -> bool:
    """Whether a search of `root` would leave `path` out: it, or a directory above it, is excluded or ignored by git."""
    top = Path(os.path.realpath(root))
    real = Path(os.path.realpath(path.parent)) / path.name
    inside = [item for item in (real, *real.parents) if item.is_relative_to(top) and item != top]
    ignores = [*_ignores_above(real.parent), *_ignore_file(str(real.parent / ".gitignore"), str(real.parent))]
    excluded = _excluder(top, exclude)
    return any(
        (item.name in EXCLUDED and (item != real or item.is_dir()))
        or _ignored(str(item), item != real or item.is_dir(), ignores)
        or _ignored(str(item), item != real or item.is_dir(), excluded)
        for item in inside
    )


def _nothing(paths: Sequence[Path], found: Sequence[Path | Outcome]) -> None:
    skipped = [item for item in found if isinstance(item, Outcome)]
    if any(item.path in paths for item in skipped):
        return  # named one by one by the user: their outcomes say all there is to say
    where = ", ".join(map(str, paths))
    seen = f" ({len(skipped)} skipped, such as {skipped[0].path}: {skipped[0].reason})" if skipped else ""
    raise UsageError(
        f"nothing to read under {where}{seen}",
        hint="valid: Python files, requirements, images, scripts and settings, or a directory with some that neither "
        ".gitignore nor `exclude` rules out",
    )


def _path(item: Path | Outcome) -> Path:
    return item.path if isinstance(item, Outcome) else item


def _excluder(root: Path, patterns: Sequence[str]) -> Ignores:
    return [(str(root), _spec(patterns))] if patterns else []


def _spec(lines: Iterable[str]) -> "GitIgnoreSpec":
    from pathspec import GitIgnoreSpec  # 20 ms that a run over given files need not pay

    return GitIgnoreSpec.from_lines(lines)


class _Walk:
    """One PATH's search. Ignore files are (directory, patterns), the deepest last; the last that decides wins."""

    def __init__(self, root: Path, excluded: Ignores) -> None:
        self._roots = [root]
        self._excluded = excluded
        self._entered: set[tuple[int, int]] = set()
        self._linked: list[tuple[str, Ignores]] = []
        self.links: set[Path] = set()
        """Everything met that is a link, or that was reached through one."""

    def given_file(self, path: Path) -> Iterator[Path | Outcome]:
        """Settle a PATH that is no directory."""
        if path.is_symlink() and not path.exists():
            yield Outcome(path, Status.FAILED, "a symbolic link to nothing, or to itself")
        elif path.is_symlink() and not self._inside(str(path)):
            yield self._leads_out(path)
        elif not path.is_file():
            yield Outcome(path, Status.SKIPPED, "not a regular file")
        elif reason := NOT_MIGRATED.get(path.suffix):
            yield Outcome(path, Status.SKIPPED, reason)
        else:
            yield path

    def directory(self, path: Path) -> Iterator[Path | Outcome]:
        """Search a PATH that is a directory; linked directories come after all others."""
        real = Path(os.path.realpath(path))
        if path.is_symlink() and not self._inside(str(path)):
            yield self._leads_out(path)
            return
        self._roots.append(real)
        ignores = _ignores_above(real)
        if _ignored(str(real), True, ignores):
            ignores = []  # asked for by name, so it is wanted
        yield from self._enter(str(path), str(real), ignores)
        while self._linked:
            directory, ignores = self._linked.pop(0)
            for item in self._enter(directory, os.path.realpath(directory), ignores):
                self.links.add(_path(item))
                yield item

    def _enter(self, directory: str, real: str, ignores: Ignores) -> Iterator[Path | Outcome]:
        pending = [(directory, real, ignores)]
        while pending:
            here, real, ignores = pending.pop()
            try:
                status = os.stat(here)
                if (status.st_dev, status.st_ino) in self._entered:
                    continue
                self._entered.add((status.st_dev, status.st_ino))
                with os.scandir(here) as scan:
                    entries = sorted(scan, key=lambda entry: entry.name)
            except OSError as error:
                yield Outcome(Path(here), Status.FAILED, f"cannot be searched: {error.strerror or error}")
                continue
            if any(entry.name == ".gitignore" for entry in entries):
                ignores = ignores + _ignore_file(os.path.join(real, ".gitignore"), real)
            for entry in entries:
                yield from self._entry(entry, real, ignores, pending)

    def _entry(
        self,
        entry: os.DirEntry[str],
        real: str,
        ignores: Ignores,
        pending: list[tuple[str, str, Ignores]],
    ) -> Iterator[Path | Outcome]:
        suffix = os.path.splitext(entry.name)[1]
        is_link = entry.is_symlink()
        is_directory = os.path.isdir(entry.path) if is_link else entry.is_dir()
        kind = "" if is_directory else kinds.of(entry.path)
        named = is_directory or kind or suffix in NOT_MIGRATED
        if not named and (suffix or not _is_script(entry)):
            return
        own_path = os.path.join(real, entry.name)
        if is_directory and entry.name in EXCLUDED:
            return
        if _ignored(own_path, is_directory, ignores) or _ignored(own_path, is_directory, self._excluded):
            return
        path = Path(entry.path)
        if is_link:
            self.links.add(path)
        if is_link and not self._inside(own_path):
            yield self._leads_out(path)
        elif is_directory:
            if os.path.lexists(os.path.join(entry.path, "pyvenv.cfg")):
                return
            if is_link:
                self._linked.append((entry.path, ignores))
            else:
                pending.append((entry.path, own_path, ignores))
        elif is_link and not os.path.exists(own_path):
            status = Status.FAILED if kind == kinds.PYTHON else Status.SKIPPED
            yield Outcome(path, status, "a symbolic link to nothing, or to itself")
        elif kinds.is_data(kind, entry.stat().st_size):
            return
        elif not stat.S_ISREG(entry.stat().st_mode):
            yield Outcome(path, Status.SKIPPED, "not a regular file")
        elif reason := NOT_MIGRATED.get(suffix):
            yield Outcome(path, Status.SKIPPED, reason)
        else:
            yield path

    def _inside(self, path: str) -> bool:
        target = Path(os.path.realpath(path))
        return any(target.is_relative_to(root) for root in self._roots)

    def _leads_out(self, path: Path) -> Outcome:
        return Outcome(path, Status.SKIPPED, f"a symbolic link that leads out of {self._roots[0]}")


def _is_script(entry: os.DirEntry[str]) -> bool:
    """Whether a file without a suffix may be run, and says in its first line that Python runs it."""
    try:
        mode = entry.stat().st_mode
        if not stat.S_ISREG(mode) or not mode & 0o111:
            return False
        with open(entry.path, "rb") as file:
            return _RUN_BY_PYTHON.match(file.read(80)) is not None
    except OSError:
        return False


_RUN_BY_PYTHON = re.compile(rb"#![^\n]*\bpython")


def _ignored(path: str, is_directory: bool, ignores: Ignores) -> bool:
    for directory, spec in reversed(ignores):
        relative = os.path.relpath(path, directory)
        if relative == os.pardir or relative.startswith(os.pardir + os.sep):
            continue
        verdict = spec.check_file(relative + "/" if is_directory else relative).include
        if verdict is not None:
            return verdict
    return False


def _ignores_above(directory: Path) -> Ignores:
    """The ignore files above `directory` that git would apply to it: those of its repository's upper directories."""
    top = find_top(directory)
    if top is None:
        return []
    ignores = _ignore_file(str(top / ".git" / "info" / "exclude"), str(top))
    above = [parent for parent in reversed(directory.parents) if parent.is_relative_to(top)]
    for parent in above:
        ignores += _ignore_file(str(parent / ".gitignore"), str(parent))
    return ignores


def _ignore_file(name: str, directory: str) -> Ignores:
    if not os.path.isfile(name):
        return []
    try:
        with open(name, encoding="utf-8", errors="surrogateescape") as file:
            lines = [line for line in file.read().splitlines() if line.strip() and not line.startswith("#")]
    except OSError:
        return []
    if not lines:
        return []
    return [(directory, _lenient(lines))]


def _lenient(lines: list[str]) -> "GitIgnoreSpec":
    """All the patterns that mean something; git too passes over those that do not."""
    try:
        return _spec(lines)
    except ValueError:
        kept = []
        for line in lines:
            try:
                _spec([line])
            except ValueError:
                continue
            kept.append(line)
        return _spec(kept)
