"""`tpuport config`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tpuport.cli import tree

if TYPE_CHECKING:
    from tpuport.config import Config

_DEFAULT = "default"


def config(
    path: Annotated[
        Path, typer.Argument(metavar="[PATH]", help="A file or directory that a run would be about.")
    ] = Path(),
    format_: tree.Format = "text",
    json: tree.Json = False,
) -> None:
    """Print the settings in force for a path, and where each comes from.

    Exit status: 0 printed, 2 settings that can't be used.
    """
    from tpuport import catalog
    from tpuport.cli.streams import sheet
    from tpuport.config import load
    from tpuport.output import formats
    from tpuport.profile.thresholds import budgets

    render = formats.config("json" if json else format_)
    settings = load(path)
    known = catalog.load(settings.rules)
    chosen = tree.in_force(known, settings)
    budgets(settings)
    render(settings, tuple(_settings(settings, path)), len(chosen), len(known.rules), sheet())


def _settings(settings: "Config", path: Path) -> Iterator[tuple[str, Any, str]]:
    """Name, value and origin of each setting; values are what JSON can hold."""
    from tpuport.config import KEYS

    for key in KEYS:
        value = getattr(settings, key.replace("-", "_"))
        origin = settings.origins.get(key, _DEFAULT)
        if key == "min-torch":
            floor, _ = tree.floor(settings, path, "")
            value, origin = floor.version, origin if value else floor.source or _DEFAULT
        yield key, _plain(value), origin


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return [_plain(inner) for inner in value]
    return str(value) if isinstance(value, str | Path) else value
