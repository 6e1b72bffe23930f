"""Every output format by name, a table a command; a new format is a module and a line here."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from tpuport.engine import Report
from tpuport.errors import UsageError
from tpuport.model import Rule
from tpuport.output import lint_json, lint_text, migrate_json, migrate_text, rules_json, rules_text
from tpuport.output.style import Sheet

Format = TypeVar("Format")


class RuleFormat(NamedTuple):
    """How the rules are shown: all of them, or one."""

    all: Callable[[Sequence[Rule], Sheet], None]
    one: Callable[[Rule, Sheet], None]


LINT: dict[str, Callable[[Report, Sheet], None]] = {
    "text": lint_text.render,
    "json": lint_json.render,
}
MIGRATE: dict[str, Callable[[Report, Sheet], None]] = {
    "text": migrate_text.render,
    "json": migrate_json.render,
}
RULES = {
    "text": RuleFormat(rules_text.render_list, rules_text.render_rule),
    "json": RuleFormat(rules_json.render_list, rules_json.render_rule),
}


def chosen(formats: Mapping[str, Format], name: str) -> Format:
    """The format called `name`. Raises UsageError naming the valid ones."""
    if name in formats:
        return formats[name]
    near = difflib.get_close_matches(name, formats, 1)
    raise UsageError(
        f"--format: unknown format {name!r}" + (f": did you mean {near[0]}?" if near else ""),
        hint=f"valid: {', '.join(formats)}",
    )
