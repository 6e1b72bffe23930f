"""The project's own settings: `[tool.tpuport]` in pyproject.toml, or a tpuport.toml."""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tpuport.errors import ConfigError
from tpuport.model import Severity
from tpuport.nearest import did_you_mean
from tpuport.source.text import MAX_SIZE

STANDALONE = "tpuport.toml"
PYPROJECT = "pyproject.toml"
TIME_LIMIT = 30.0
"""Seconds that one file may take; the slowest hand-written files take about one."""

KEYS = (
    "select",
    "ignore",
    "exclude",
    "per-file-ignores",
    "severity",
    "require-reason",
    "baseline",
    "min-torch",
    "line-length",
    "rules",
    "max-file-size",
    "time-limit",
    "budgets",
)
"""Every setting; the field of `Config` has the same name with underscores."""

_KINDS = {bool: "the boolean", int: "the integer", float: "the number", str: "the string", list: "the list"}


@dataclass(frozen=True, slots=True)
class Config:
    """The settings in force, before the command line's own. Paths are absolute; sizes are bytes, times seconds."""

    root: Path
    """The project's top directory: patterns are relative to it, and links that lead out of it are not followed."""
    file: Path | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    per_file_ignores: dict[str, tuple[str, ...]] = field(default_factory=dict)
    min_torch: str = ""
    line_length: int | None = None
    rules: tuple[Path, ...] = ()
    max_file_size: int = MAX_SIZE
    time_limit: float = TIME_LIMIT
    severity: dict[str, Severity] = field(default_factory=dict)
    """By code, prefix of codes or name of a rule."""
    require_reason: bool = False
    baseline: Path | None = None
    budgets: tuple[str, ...] = ()
    """Limits of a profile, as `--fail-on` takes them; `tpuport.profile.thresholds` reads them."""
    origins: dict[str, str] = field(default_factory=dict, compare=False)
    """Where the value of each setting comes from, as `file:line`; a setting that is not in here has its default."""


def load(path: Path) -> Config:
    """Settings for a run over `path`: those of the nearest settings file at or above it, and defaults without one.

    Raises ConfigError for a file that is not valid TOML, an unknown key, or a value of the wrong type.
    """
    start = Path(os.path.abspath(path))
    directory = start if start.is_dir() else start.parent
    for candidate in (directory, *directory.parents):
        standalone = candidate / STANDALONE
        if standalone.is_file():
            return _config(standalone, _parse(standalone), candidate)
        pyproject = candidate / PYPROJECT
        if pyproject.is_file():
            table = _table(_parse(pyproject), "tool").get("tpuport")
            if table is not None:
                return _config(pyproject, table, candidate)
    root = _root(directory)
    width, origin = _nearest_width(directory, root)
    return Config(root, line_length=width, origins={"line-length": origin} if width else {})


def upwards(path: Path, root: Path) -> tuple[Path, ...]:
    """The directories from `path`, or the one that holds it, up to `root`."""
    start = Path(os.path.abspath(path))
    directory = start if start.is_dir() else start.parent
    if not directory.is_relative_to(root):
        return (root,)
    return tuple(parent for parent in (directory, *directory.parents) if parent.is_relative_to(root))


def _nearest_width(path: Path, root: Path) -> tuple[int | None, str]:
    for directory in upwards(path, root):
        width, origin = _formatter_setting(directory)
        if width:
            return width, origin
    return None, ""


def _formatter_setting(root: Path) -> tuple[int | None, str]:
    """The width and the file that states it."""
    for name, tool in (("ruff.toml", ""), (".ruff.toml", ""), (PYPROJECT, "ruff"), (PYPROJECT, "black")):
        file = root / name
        if not file.is_file():
            continue
        table = _parse(file)
        if tool:
            table = _table(_table(table, "tool"), tool)
        width = table.get("line-length") or table.get("line_length")
        if isinstance(width, int) and not isinstance(width, bool) and width > 0:
            return width, f"{_shown(file)}{f', {tool}' if tool else ''}"
    for name in (".flake8", "setup.cfg", "tox.ini"):
        width = _flake8_width(root / name)
        if width is not None:
            return width, f"{_shown(root / name)}, flake8"
    return None, ""


def _flake8_width(file: Path) -> int | None:
    if not file.is_file():
        return None
    import configparser

    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(file.read_text(encoding="utf-8", errors="replace"))
        return parser.getint("flake8", "max-line-length")
    except (configparser.Error, ValueError, OSError):
        return None  # another tool's file: its mistakes are not ours to report


def _root(directory: Path) -> Path:
    """The repository's top directory; without one the nearest that looks like a project's."""
    marks = ((".git", ".hg"), (PYPROJECT, "setup.py", "setup.cfg"))
    for names in marks:
        for candidate in (directory, *directory.parents):
            if any((candidate / name).exists() for name in names):
                return candidate
    return directory


def _parse(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_bytes().decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        place = re.search(r"at line (\d+), column (\d+)", str(error))
        where = f"{_shown(file)}:{place[1]}:{place[2]}" if place else _shown(file)
        raise ConfigError(f"{where}: not valid TOML: {error}", hint="correct the file, or move it away") from None
    except OSError as error:
        raise ConfigError(f"{_shown(file)}: cannot be read: {error.strerror or error}") from None


def _table(parent: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def _config(file: Path, table: Any, root: Path) -> Config:
    reader = _Reader(file, table)
    width, origin = reader.whole("line-length", None), ""
    if width is None:
        width, origin = _formatter_setting(root)
    baseline = reader.path("baseline")
    return Config(
        root=root,
        file=file,
        select=reader.strings("select"),
        ignore=reader.strings("ignore"),
        exclude=reader.strings("exclude"),
        per_file_ignores=reader.strings_by_key("per-file-ignores"),
        min_torch=reader.version("min-torch"),
        line_length=width,
        rules=tuple(root / name for name in reader.strings("rules")),
        max_file_size=reader.whole("max-file-size", None) or MAX_SIZE,
        time_limit=reader.number("time-limit", TIME_LIMIT),
        severity=reader.severities("severity"),
        require_reason=reader.boolean("require-reason"),
        baseline=root / baseline if baseline else None,
        budgets=reader.strings("budgets"),
        origins={**reader.origins(), **({"line-length": origin} if origin else {})},
    )


class _Reader:
    """Takes typed values out of the settings table; every error names file, line, key, and what is valid."""

    def __init__(self, file: Path, table: Any) -> None:
        self._file = file
        if not isinstance(table, dict):
            raise ConfigError(f"{_shown(file)}: tool.tpuport has to be a table, not {_kind(table)}")
        self._table: dict[str, Any] = table
        for key in table:
            if key not in KEYS:
                raise ConfigError(
                    f"{self._at(key)}: unknown setting `{key}`{did_you_mean(key, KEYS)}",
                    hint=f"valid settings: {', '.join(KEYS)}",
                )

    def strings(self, key: str) -> tuple[str, ...]:
        return self._strings(key, self._table.get(key, []))

    def strings_by_key(self, key: str) -> dict[str, tuple[str, ...]]:
        value = self._table.get(key, {})
        if not isinstance(value, dict):
            raise self._wrong(key, "a table of file pattern = list of rule codes", value)
        return {pattern: self._strings(key, codes) for pattern, codes in value.items()}

    def version(self, key: str) -> str:
        value = self._table.get(key, "")
        if not isinstance(value, str):
            raise self._wrong(key, 'a version in quotes, such as "2.6"', value)
        return value

    def whole(self, key: str, default: int | None) -> int | None:
        value = self._table.get(key, default)
        if value is not None and (type(value) is not int or value <= 0):
            raise self._wrong(key, "a whole number above 0", value)
        return value

    def number(self, key: str, default: float) -> float:
        value = self._table.get(key, default)
        if type(value) not in (int, float) or value <= 0:
            raise self._wrong(key, "a number above 0", value)
        return float(value)

    def boolean(self, key: str) -> bool:
        value = self._table.get(key, False)
        if type(value) is not bool:
            raise self._wrong(key, "true or false", value)
        return value

    def path(self, key: str) -> str:
        value = self._table.get(key, "")
        if not isinstance(value, str):
            raise self._wrong(key, "a file's name in quotes", value)
        return value

    def severities(self, key: str) -> dict[str, Severity]:
        value = self._table.get(key, {})
        valid = ", ".join(f'"{severity}"' for severity in Severity)
        expected = f"a table of rule code = severity ({valid})"
        if not isinstance(value, dict):
            raise self._wrong(key, expected, value)
        for code, severity in value.items():
            if severity not in list(Severity):
                raise self._wrong(key, f"one of {valid} for {code}", severity)
        return {code: Severity(severity) for code, severity in value.items()}

    def origins(self) -> dict[str, str]:
        """Where each setting of the table stands."""
        return {key: self._at(key) for key in self._table}

    def _strings(self, key: str, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._wrong(key, "a list of strings", value)
        return tuple(value)

    def _wrong(self, key: str, expected: str, value: Any) -> ConfigError:
        return ConfigError(f"{self._at(key)}: `{key}` has to be {expected}, not {_kind(value)} {value!r}")

    def _at(self, key: str) -> str:
        pattern = re.compile(rf"""^\s*(\[(tool\.tpuport\.)?)?["']?{re.escape(key)}["']?\s*(=|\])""")
        for number, line in enumerate(self._file.read_text(encoding="utf-8-sig").splitlines(), 1):
            if pattern.match(line):
                return f"{_shown(self._file)}:{number}"
        return _shown(self._file)


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), f"the {type(value).__name__}")


def _shown(file: Path) -> str:
    here = Path.cwd()
    return str(file.relative_to(here)) if file.is_relative_to(here) else str(file)
