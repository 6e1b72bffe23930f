"""The formats that `profile` and `report` print, by name."""

import sys
from enum import StrEnum

from rich.console import Console

from tpuport.output import profile_json, profile_text
from tpuport.profile.analyses import Report
from tpuport.profile.session import Session


class ReportFormat(StrEnum):
    """A format of the profile report."""

    TEXT = "text"
    JSON = "json"


def print_report(session: Session, report: Report, chosen: ReportFormat) -> None:
    """Print the report to standard output."""
    if chosen is ReportFormat.JSON:
        sys.stdout.write(profile_json.render(session, report) + "\n")
    else:
        profile_text.render(session, report, Console(highlight=False))
