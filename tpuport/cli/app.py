"""The `tpuport` command: its sub-commands, global options, and the one place where errors become exit codes."""

import errno
import os
import sys
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from tpuport import __version__
from tpuport.cli import COMMANDS, command_class, load
from tpuport.errors import INTERRUPTED, ExitCode, TpuportError, UsageError
from tpuport.nearest import did_you_mean

_OPTIONS: dict[str, Any] = {
    "add_completion": False,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


class _Commands(typer.core.TyperGroup):
    """The sub-commands, each imported when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - click's signature
        """Every command's name."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - click's signature
        """The command of that name, or None."""
        if cmd_name not in COMMANDS:
            return None
        single = typer.Typer(**_OPTIONS)
        single.command(cmd_name, cls=command_class(cmd_name))(load(cmd_name))
        return typer.main.get_command(single)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that `args` begin with. Raises UsageError for one that there is not."""
        if args[0] not in COMMANDS:
            raise UsageError(
                f"there is no command {args[0]!r}{did_you_mean(args[0], COMMANDS)}",
                hint=f"valid: {', '.join(COMMANDS)}",
            )
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an interrupt is said, which typer would exit on without a word."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            _interrupted()
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    name="tpuport",
    cls=_Commands,
    help="Take PyTorch from CUDA to TPU: migrate the code, keep it portable, profile what the port gains.",
    no_args_is_help=True,
    **_OPTIONS,
)

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_debug = False


def _versions(verbose: bool) -> str:
    if not verbose:
        return f"tpuport {__version__}"
    from tpuport.cli.versions import report

    return report()


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", "-V", help="Print the version and exit.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="With --version: also what a bug report needs.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    global _debug
    _debug = debug
    if version:
        print(_versions(verbose))
        raise typer.Exit
    if verbose:
        raise typer.BadParameter("--verbose goes with --version", param_hint="--verbose")


def _fail(message: str, hint: str) -> None:
    from tpuport.cli.streams import sheet
    from tpuport.output.style import write

    lines = [[("error:", "bold red"), (f" {message}", "")]]
    if hint:
        lines.append([("hint:", "bold"), (f" {hint}", "")])
    write(sheet(stderr=True), lines)


def _interrupted() -> None:
    _fail("interrupted", "every file is as it was or wholly written; run the command again to go on")


def main() -> None:
    """Run the command line and exit with the code that `tpuport.errors.ExitCode` defines."""
    try:
        _run()
    except TpuportError as error:
        if _debug:
            import traceback

            traceback.print_exc()
        _fail(str(error), error.hint)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _interrupted()
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        _give_stdout_up()
        sys.exit(ExitCode.CLEAN)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        _give_stdout_up()
        _fail(
            f"{error.filename or 'the output'} can't be written: {error.strerror}",
            "free some space, or write elsewhere",
        )
        sys.exit(ExitCode.ERROR)


def _run() -> None:
    try:
        app(standalone_mode=True)
    except SystemExit:
        # What can't be written any more is to be said here, not by the interpreter as it ends; a server closes it.
        if not sys.stdout.closed:
            sys.stdout.flush()
        raise


def _give_stdout_up() -> None:
    """What is left for it goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
