"""What may have gone wrong with a file that is no Python: its syntax, its data, its comments."""

import json
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from typing import Any

import yaml

_LOADERS = {
    "yaml": lambda text: list(yaml.load_all(text, Loader=yaml.BaseLoader)),
    "json": json.loads,
    "toml": tomllib.loads,
}
_BROKEN = (yaml.YAMLError, ValueError, RecursionError)


def faults(kind: str, old: str, new: str) -> Iterator[tuple[str, str]]:
    """The kind of each fault and what it is, of a text that became another one; nothing if it was broken before."""
    changed = sum(a != b for a, b in zip(old.split("\n"), new.split("\n"), strict=False))
    changed += abs(old.count("\n") - new.count("\n"))
    load = _LOADERS.get(kind)
    if load is not None:
        try:
            before = dict(_leaves(load(old), ()))
        except _BROKEN:
            return
        try:
            after = dict(_leaves(load(new), ()))
        except _BROKEN as error:
            yield "broken", f"can not be read any more: {error}"
            return
        if set(before) - set(after):
            yield "broken", f"lost {min(set(before) - set(after))}"
        if sum(before.get(key) != value for key, value in after.items()) > changed:
            yield "broken", "more values changed than lines"
    if kind == "shell" and _is_script(old) and not _is_script(new):
        yield "broken", "bash does not read it any more"
    if _comments(kind, old) != _comments(kind, new):
        yield "comments", "they are not the same any more"


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, str(key)))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _leaves(inner, (*path, str(number)))
    else:
        yield path, value


def _is_script(text: str) -> bool:
    bash = shutil.which("bash")
    return bash is None or not subprocess.run([bash, "-n"], input=text.encode(), capture_output=True).returncode


def _comments(kind: str, text: str) -> list[str]:
    """Lines that are comments, which no rewrite touches."""
    return [] if kind == "json" else [line for line in text.split("\n") if line.lstrip().startswith("#")]
