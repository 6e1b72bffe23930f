"""The rules as JSON, version 1: always a list, of one where one was asked for."""

import json
from collections.abc import Sequence

from tpuport.model import Rule
from tpuport.output.style import Sheet

VERSION = 1
"""Goes up when a key changes its meaning or goes away; new keys may come at any time."""


def render_list(rules: Sequence[Rule], sheet: Sheet) -> None:
    """Write one JSON object with every rule in it."""
    records = [
        {
            "code": rule.code,
            "name": rule.name,
            "area": rule.area,
            "severity": str(rule.severity),
            "safety": str(rule.safety),
            "message": rule.title,
            "why": rule.why,
            "reference": rule.reference,
            "min_torch": rule.min_torch,
            "examples": [
                {"before": example.before, "after": example.after, "note": example.note} for example in rule.examples
            ],
        }
        for rule in rules
    ]
    sheet.file.write(json.dumps({"version": VERSION, "rules": records}, indent=2) + "\n")


def render_rule(rule: Rule, sheet: Sheet) -> None:
    """Write one JSON object with this rule in it."""
    render_list([rule], sheet)
