"""`tpuport rules`."""

from typing import Annotated

import typer

from tpuport.cli import tree


def rules(
    code: Annotated[
        str,
        typer.Argument(metavar="[CODE]", help="A rule's code or name, or what codes begin with.", show_default=False),
    ] = "",
    directories: tree.Rules = None,
    format_: Annotated[str, typer.Option("--format", help="Output format: text, json or markdown.")] = "text",
    json: tree.Json = False,
) -> None:
    """List the rules, or those whose codes begin so, or explain one: what it matches, why, and what becomes of it."""
    from tpuport import catalog
    from tpuport.cli.streams import sheet
    from tpuport.output import formats

    form = formats.rules("json" if json else format_)
    known = catalog.load(directories or (), examples=True)
    if not code:
        form.all(known.rules, sheet())
    elif any(rule.code != code.upper() and rule.code.startswith(code.upper()) for rule in known.rules):
        form.all(known.select([code]), sheet())
    else:
        form.one(known.get(code), sheet())
