"""The settings in force, for people: a line each, with where it comes from; values, which may be long, last."""

import json
from collections.abc import Sequence
from typing import Any

from tpuport.config import Config
from tpuport.output.style import Line, Sheet, write


def render(config: Config, settings: Sequence[tuple[str, Any, str]], chosen: int, known: int, sheet: Sheet) -> None:
    """Write the project's top directory, the settings file, every setting, and how many rules they leave."""
    rows = [
        (name, "-" if value is None else json.dumps(value, ensure_ascii=False), origin)
        for name, value, origin in settings
    ]
    name_width = max(len(name) for name, *_ in rows)
    origin_width = max(len(origin) for *_, origin in rows)
    lines: list[Line] = [
        [("root", "bold"), (f"  {config.root}", "")],
        [("file", "bold"), (f"  {config.file or 'none: every setting has its default'}", "")],
        [],
    ]
    for name, value, origin in rows:
        style = "dim" if origin == "default" else ""
        lines.append([(f"{name:<{name_width}}  ", "bold"), (f"{origin:<{origin_width}}  ", "dim"), (value, style)])
    lines += [[], [(f"{chosen} of {known} rules are in force.", "")]]
    write(sheet, lines)
