"""The rules: TOML files under `rules/`, read into `Rule` and selected by code or name."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from tpuport import kinds
from tpuport.errors import ConfigError
from tpuport.model import Effort, Example, Mapping, Rule, Safety, Severity
from tpuport.nearest import did_you_mean

REQUIRED = ("code", "name", "area", "severity", "safety", "message", "why", "reference")
OPTIONAL = ("min_torch", "map", "check", "effort", "files", "words", "comments", "examples")
"""A rule with `comments` is about tpuport's own comments: `tpuport.suppress` makes its findings."""

MAP_KEYS = ("names", "guard", "otherwise", "drop_arguments", "positional", "set_arguments")


def rules_directory() -> Path:
    """Where the shipped rules lie: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).parent
    installed = package / "rules"
    return installed if installed.is_dir() else package.parent / "rules"


def _refuse_unknown(table: dict[str, Any], valid: Sequence[str], where: str) -> None:
    for key in table:
        if key not in valid:
            raise ConfigError(
                f"{where}: unknown key {key!r}{did_you_mean(key, valid)}", hint=f"valid: {', '.join(valid)}"
            )


def _mapping(table: dict[str, Any], where: str) -> Mapping:
    _refuse_unknown(table, MAP_KEYS, f"{where} [map]")
    guard = table.get("guard", "")
    if guard not in ("", "accelerator", "cuda"):
        raise ConfigError(f"{where} [map]: guard is {guard!r}", hint='valid: "accelerator", "cuda"')
    if not table.get("names"):
        raise ConfigError(
            f"{where}: [map.names] is empty", hint='write "old.qualified.name" = "new.name", or "" to report'
        )
    return Mapping(
        names=dict(table["names"]),
        guard=guard,
        otherwise=table.get("otherwise", ""),
        drop_arguments=tuple(table.get("drop_arguments", ())),
        positional=tuple(table.get("positional", ())),
        set_arguments=dict(table.get("set_arguments", {})),
    )


def _kinds(named: Sequence[str], where: str) -> tuple[str, ...]:
    valid = kinds.names()
    for kind in named:
        if kind not in valid:
            raise ConfigError(f"{where}: there is no kind {kind!r}", hint=f"valid: {', '.join(valid)}")
    return tuple(named)


def _words(table: dict[str, Any], where: str) -> tuple[str, ...]:
    words = table.get("words", [])
    if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
        raise ConfigError(f"{where}: words is {words!r}", hint='write a list of texts: words = ["cuda"]')
    if words and "check" not in table:
        raise ConfigError(f"{where}: words are for a rule with a check, as a [map] names what it looks for")
    return tuple(words)


EXAMPLES = "\n[[examples]]"
"""Where a rule's examples begin. They come last, so that a run that shows none does not parse them either."""


def _rule(path: Path, examples: bool) -> Rule:
    try:
        text = path.read_text(encoding="utf-8")
        table = tomllib.loads(text if examples else text.partition(EXAMPLES)[0])
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: not a readable rule file: {error}") from error
    _refuse_unknown(table, REQUIRED + OPTIONAL, str(path))
    if missing := [key for key in REQUIRED if key not in table]:
        raise ConfigError(f"{path}: missing {', '.join(missing)}")
    if sum(key in table for key in ("map", "check", "comments")) != 1:
        raise ConfigError(f"{path}: a rule has either a [map] table or a check")
    if table["name"] != path.stem:
        raise ConfigError(f"{path}: name is {table['name']!r}, but a rule's name is its file's name")
    try:
        return Rule(
            code=table["code"],
            name=table["name"],
            area=table["area"],
            severity=Severity(table["severity"]),
            safety=Safety(table["safety"]),
            message=table["message"],
            why=table["why"].strip(),
            reference=table["reference"],
            min_torch=table.get("min_torch", ""),
            mapping=_mapping(table["map"], str(path)) if "map" in table else None,
            check=table.get("check", ""),
            effort=Effort(table.get("effort", Effort.LOW)),
            words=_words(table, str(path)),
            files=_kinds(table.get("files", [kinds.PYTHON]), f"{path}: files"),
            examples=tuple(
                Example(
                    before=example["before"],
                    after=None if example.get("unchanged") else example["after"],
                    note=example.get("note", ""),
                    min_torch=example.get("min_torch", ""),
                    unsafe=example.get("unsafe", False),
                    run=example.get("run", ""),
                    file=example.get("file", "example.py"),
                )
                for example in table.get("examples", ())
            ),
        )
    except (ValueError, KeyError) as error:
        raise ConfigError(f"{path}: {error}") from error


@dataclass(frozen=True, slots=True)
class Catalog:
    """All rules of a run, ordered by code."""

    rules: tuple[Rule, ...]

    def get(self, key: str) -> Rule:
        """The rule with that code or name. Raises ConfigError naming the nearest one."""
        for rule in self.rules:
            if key.upper() == rule.code or key == rule.name:
                return rule
        raise self._unknown(key)

    def _unknown(self, key: str) -> ConfigError:
        valid = [word for rule in self.rules for word in (rule.code, rule.name)]
        return ConfigError(f"unknown rule {key!r}{did_you_mean(key, valid)}", hint="`tpuport rules` lists them all")

    def _matching(self, key: str) -> set[str]:
        found = {r.code for r in self.rules if key == r.name or r.code.startswith(key.upper())}
        if not found:
            raise self._unknown(key)
        return found

    def select(self, select: Sequence[str] = (), ignore: Sequence[str] = ()) -> tuple[Rule, ...]:
        """The rules whose code starts with, or whose name is, one of `select` (empty: all), less those of `ignore`."""
        chosen = set().union(*map(self._matching, select)) if select else {rule.code for rule in self.rules}
        chosen -= set().union(*map(self._matching, ignore))
        return tuple(rule for rule in self.rules if rule.code in chosen)


@lru_cache(maxsize=8)
def with_shipped(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """All shipped rules, and those of `rules` beside them or in their place."""
    return tuple({rule.code: rule for rule in (*load().rules, *rules)}.values())


@cache
def _load(directories: tuple[Path, ...], examples: bool) -> Catalog:
    rules: dict[str, tuple[Rule, Path]] = {}
    for directory in directories:
        if not directory.is_dir():
            raise ConfigError(f"rule folder {directory} does not exist")
        for path in sorted(directory.rglob("*.toml")):
            rule = _rule(path, examples)
            if rule.code in rules:
                raise ConfigError(f"{path}: code {rule.code} is already that of {rules[rule.code][1]}")
            rules[rule.code] = rule, path
    return Catalog(tuple(rules[code][0] for code in sorted(rules)))


def load(extra: Sequence[Path] = (), *, examples: bool = False) -> Catalog:
    """The shipped rules and those of the folders in `extra`; `examples` only where they are asked for.

    Raises ConfigError for a rule file that is not right.
    """
    return _load((rules_directory(), *extra), examples)
