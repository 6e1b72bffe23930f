"""A command that words the refusal of an unknown option as all of tpuport's messages are."""

from typing import Any

import typer
import typer.core

from tpuport.errors import UsageError
from tpuport.nearest import did_you_mean

_CLICK_ERROR: Any = typer.BadParameter.__base__
"""Of the click that this typer brings with it: wrong usage of any kind."""


class Command(typer.core.TyperCommand):
    """Any of tpuport's commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line. Raises UsageError for an option that the command does not have."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except _CLICK_ERROR as error:
            if not hasattr(error, "possibilities"):
                raise
            known = {name for parameter in self.get_params(ctx) for name in parameter.opts}
            raise UsageError(
                f"tpuport {self.name} has no option {error.option_name}{did_you_mean(error.option_name, known)}",
                hint=self.where_options_are(given, known),
            ) from None

    def where_options_are(self, given: list[str], known: set[str]) -> str:  # noqa: ARG002 - for commands that know more
        """What to do about an option that is not among the `known`, on the command line `given`."""
        return f"tpuport {self.name} --help lists its options"
