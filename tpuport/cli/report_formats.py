"""The formats that `profile` and `report` print, by name."""

import sys
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console

from tpuport.cli.streams import escaping
from tpuport.output import profile_html, profile_json, profile_markdown, profile_text
from tpuport.profile.analyses import Report
from tpuport.profile.comparison import Comparison
from tpuport.profile.session import Session


class ReportFormat(StrEnum):
    """A format of the profile report."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"


FormatOption = Annotated[ReportFormat, typer.Option("--format", help="Format of the report.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Short for --format json.")]


def print_report(session: Session, report: Report, chosen: ReportFormat) -> None:
    """Print the report to standard output."""
    stdout = escaping(sys.stdout)
    if chosen is ReportFormat.TEXT:
        profile_text.render(session, report, Console(file=stdout, highlight=False))
    elif chosen is ReportFormat.JSON:
        stdout.write(profile_json.render(session, report) + "\n")
    elif chosen is ReportFormat.MARKDOWN:
        stdout.write(profile_markdown.render(session, report))
    else:
        stdout.write(profile_html.render(session, report))


def print_comparison(comparison: Comparison, before: Session, after: Session, chosen: ReportFormat) -> None:
    """Print what changed between two sessions to standard output."""
    stdout = escaping(sys.stdout)
    if chosen is ReportFormat.TEXT:
        profile_text.render_comparison(comparison, Console(file=stdout, highlight=False))
    elif chosen is ReportFormat.JSON:
        stdout.write(profile_json.render_comparison(comparison) + "\n")
    elif chosen is ReportFormat.MARKDOWN:
        stdout.write(profile_markdown.render_comparison(comparison))
    else:
        stdout.write(profile_html.render_comparison(comparison, before, after))
