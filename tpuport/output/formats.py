"""Every output format by name, a table a command; a new format is a module and a line here.

A format's module is imported when it is asked for.
"""

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from tpuport.engine import Report
from tpuport.errors import UsageError
from tpuport.model import Rule
from tpuport.nearest import did_you_mean
from tpuport.output.style import Sheet

if TYPE_CHECKING:
    from tpuport.plan import Plan

Render = Callable[[Report, Sheet], None]


class LintFormat(NamedTuple):
    """How lint's report is written, and whether the format carries what the fixes would make of the files."""

    render: Render
    wants_fixes: bool = False


class RuleFormat(NamedTuple):
    """How the rules are shown: all of them, or one."""

    all: Callable[[Sequence[Rule], Sheet], None]
    one: Callable[[Rule, Sheet], None]


LINT = {
    "text": "lint_text",
    "concise": "lint_concise",
    "json": "lint_json",
    "sarif": "lint_sarif",
    "github": "lint_github",
    "gitlab": "lint_gitlab",
    "junit": "lint_junit",
}
STATISTICS = {"text": "render_text", "concise": "render_text", "json": "render_json"}
PLAN = {"text": "plan_text", "markdown": "plan_markdown", "json": "plan_json"}
MIGRATE = {"text": "migrate_text", "json": "migrate_json"}
CONFIG = {"text": "config_text", "json": "config_json"}
RULES = {"text": "rules_text", "json": "rules_json", "markdown": "rules_markdown"}
_WITH_FIXES = ("sarif",)


def lint(name: str, *, statistics: bool = False) -> LintFormat:
    """The format of lint called `name`; with `statistics`, the one that counts. Raises UsageError."""
    module = LINT[_known(LINT, name)]
    if statistics:
        if name not in STATISTICS:
            raise UsageError(f"--statistics: not with --format {name}", hint=f"valid formats: {', '.join(STATISTICS)}")
        return LintFormat(getattr(_module("lint_statistics"), STATISTICS[name]))
    return LintFormat(_module(module).render, name in _WITH_FIXES)


def migrate(name: str) -> Render:
    """The format of migrate called `name`. Raises UsageError."""
    render: Render = _module(MIGRATE[_known(MIGRATE, name)]).render
    return render


def plan(name: str) -> "Callable[[Plan, Sheet], None]":
    """The format of a plan called `name`. Raises UsageError."""
    render: Callable[[Plan, Sheet], None] = _module(PLAN[_known(PLAN, name)]).render
    return render


def config(name: str) -> Callable[..., None]:
    """The format of the settings called `name`. Raises UsageError."""
    render: Callable[..., None] = _module(CONFIG[_known(CONFIG, name)]).render
    return render


def rules(name: str) -> RuleFormat:
    """The format of the rules called `name`. Raises UsageError."""
    module = _module(RULES[_known(RULES, name)])
    return RuleFormat(module.render_list, module.render_rule)


def _module(name: str) -> Any:
    return import_module(f"tpuport.output.{name}")


def _known(formats: Iterable[str], name: str) -> str:
    if name in formats:
        return name
    raise UsageError(
        f"--format: unknown format {name!r}{did_you_mean(name, formats)}",
        hint=f"valid: {', '.join(formats)}",
    )
