"""What of the command line of `tpuport profile` is the script, and what is the script's own."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from tpuport.cli import command
from tpuport.errors import UsageError
from tpuport.profile.locate import check_script, find_module
from tpuport.profile.notebooks import SUFFIX


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


class Command(command.Command):
    """`tpuport profile`: an option that it does not have was meant for the script."""

    def where_options_are(self, given: list[str], known: set[str]) -> str:
        """Show the command line that gives the script its own options."""
        return f"The script's own arguments come after `--`: {_separated(given, known)}"


def _separated(given: list[str], known: set[str]) -> str:
    """Return the command line with the options that tpuport does not know, and their values, after `--`."""
    ours, own = ["tpuport", "profile"], list[str]()
    end = given.index("--") if "--" in given else len(given)
    head, tail = given[:end], given[end + 1 :]
    target = ours
    for word in head:
        if word.startswith("-"):
            target = ours if word.partition("=")[0] in known else own
        target.append(word)
    if not any(word == "-m" or word.endswith((".py", SUFFIX)) for word in ours):
        return "tpuport profile SCRIPT -- ARG..."
    return shlex.join([*ours, "--", *own, *tail])
