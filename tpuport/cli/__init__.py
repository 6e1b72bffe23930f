"""The command line: one module a command, the only place that prints and that knows exit codes."""

from collections.abc import Callable
from typing import Any

from tpuport.cli.doctor import doctor
from tpuport.cli.lint import lint
from tpuport.cli.migrate import migrate
from tpuport.cli.profile import profile
from tpuport.cli.report import report
from tpuport.cli.rules import rules

COMMANDS: dict[str, Callable[..., Any]] = {
    "migrate": migrate,
    "lint": lint,
    "profile": profile,
    "report": report,
    "rules": rules,
    "doctor": doctor,
}
"""Every sub-command by name, in the order of `tpuport --help`. Heavy imports happen inside the commands."""
