"""The settings in force as JSON, version 1: `settings` maps each to its `value` and where that comes `from`."""

import json
from collections.abc import Sequence
from typing import Any

from tpuport.config import Config
from tpuport.output.style import Sheet

VERSION = 1
"""Goes up when a key changes its meaning or goes away; new keys may come at any time."""


def render(config: Config, settings: Sequence[tuple[str, Any, str]], chosen: int, known: int, sheet: Sheet) -> None:
    """Write one JSON object."""
    content = {
        "version": VERSION,
        "root": str(config.root),
        "file": str(config.file) if config.file else None,
        "settings": {name: {"value": value, "from": origin} for name, value, origin in settings},
        "rules": {"in_force": chosen, "known": known},
    }
    sheet.file.write(json.dumps(content, indent=2) + "\n")
