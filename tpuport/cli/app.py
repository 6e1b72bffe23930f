"""The `tpuport` command: its sub-commands, global options, and the one place where errors become exit codes."""

import os
import sys
import traceback
from typing import Annotated

import typer
from rich.console import Console

from tpuport import __version__
from tpuport.cli import COMMANDS
from tpuport.errors import ExitCode, TpuportError

app = typer.Typer(
    name="tpuport",
    help="Take PyTorch from CUDA to TPU: migrate the code, keep it portable, profile what the port gains.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_debug = False


def _versions(verbose: bool) -> str:
    if not verbose:
        return f"tpuport {__version__}"
    from tpuport.cli.versions import report

    return report()


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", "-V", help="Print the version and exit.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="With --version: also what a bug report needs.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    global _debug
    _debug = debug
    if version:
        print(_versions(verbose))
        raise typer.Exit
    if verbose:
        raise typer.BadParameter("--verbose goes with --version", param_hint="--verbose")


for _name, _command in COMMANDS.items():
    app.command(_name)(_command)


def _fail(message: str, hint: str) -> None:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print("error:", style="bold red", end=" ")
    console.print(message, markup=False)
    if hint:
        console.print("hint:", style="bold", end=" ")
        console.print(hint, markup=False)


def main() -> None:
    """Run the command line and exit with the code that `tpuport.errors.ExitCode` defines."""
    try:
        app(standalone_mode=True)
    except TpuportError as error:
        if _debug:
            traceback.print_exc()
        _fail(str(error), error.hint)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _fail("interrupted", "")
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.CLEAN)
