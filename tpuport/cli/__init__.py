"""The command line: one module a command, the only place that prints and that knows exit codes."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

COMMANDS = ("plan", "migrate", "lint", "profile", "report", "rules", "config", "doctor", "server")
"""Every sub-command in the order of `tpuport --help`; each is the function of its name in the module of its name."""


def load(name: str) -> Callable[..., Any]:
    """The function of a command. Only the command that runs is imported: the others' needs are not its own."""
    function: Callable[..., Any] = getattr(import_module(f"tpuport.cli.{name}"), name)
    return function


def command_class(name: str) -> type[Any]:
    """The class of a command: `Command` of its module, for one that parses its arguments in a way of its own."""
    from tpuport.cli.command import Command

    found: type[Any] = getattr(import_module(f"tpuport.cli.{name}"), "Command", Command)
    return found
