"""What of the command line of `tpuport profile` is the script, and what is the script's own."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
import typer.core

from tpuport.errors import UsageError
from tpuport.nearest import did_you_mean
from tpuport.profile.locate import check_script, find_module
from tpuport.profile.notebooks import SUFFIX

_CLICK_ERROR: Any = typer.BadParameter.__base__
"""Of the click that this typer brings with it: wrong usage of any kind."""


@dataclass(frozen=True, slots=True)
class Program:
    """What is to run: `file` is absolute, `as_given` what reports call it."""

    file: Path
    as_given: str
    arguments: tuple[str, ...]
    module: str = ""


def named_program(script: str | None, arguments: list[str], module: str) -> Program:
    """Return what runs: a script, or with `module` what that names.

    Raises UsageError when neither is named, or it can't be run.
    """
    if module:
        # With -m there is no script: what stands in its place is the first argument.
        own = arguments if script is None else [script, *arguments]
        return Program(find_module(module, Path.cwd()), f"-m {module}", tuple(own), module)
    if script is None:
        raise UsageError(
            "nothing to profile was named", hint="Type: tpuport profile SCRIPT, or tpuport profile -m MODULE"
        )
    path = Path(script)
    check_script(path)
    return Program(path.absolute(), script, tuple(arguments))


class Command(typer.core.TyperCommand):
    """`tpuport profile`; an option that it does not have was meant for the script."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line.

        Raises UsageError for an unknown option, with the command line that gives it to the script.
        """
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except _CLICK_ERROR as error:
            if not hasattr(error, "possibilities"):
                raise
            known = {name for parameter in self.get_params(ctx) for name in parameter.opts}
            raise UsageError(
                f"tpuport profile has no option {error.option_name}{did_you_mean(error.option_name, known)}",
                hint=f"The script's own arguments come after `--`: {_separated(given, known)}",
            ) from None


def _separated(given: list[str], known: set[str]) -> str:
    """Return the command line with the options that tpuport does not know, and their values, after `--`."""
    command, own = ["tpuport", "profile"], list[str]()
    end = given.index("--") if "--" in given else len(given)
    head, tail = given[:end], given[end + 1 :]
    target = command
    for word in head:
        if word.startswith("-"):
            target = command if word.partition("=")[0] in known else own
        target.append(word)
    if not any(word == "-m" or word.endswith((".py", SUFFIX)) for word in command):
        return "tpuport profile SCRIPT -- ARG..."
    return shlex.join([*command, "--", *own, *tail])
