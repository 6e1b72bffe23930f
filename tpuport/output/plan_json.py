"""The plan of a port as JSON, version 1: one object, of which `schemas/` says what every field means."""

import json
from typing import TypedDict

from tpuport.account import Group, Site, count
from tpuport.model import Outcome, Status
from tpuport.output import findings
from tpuport.output.style import Sheet
from tpuport.plan import Plan

VERSION = 1
"""Goes up when a key changes its meaning or goes away; new keys may come at any time."""


class Summary(TypedDict):
    """Counts."""

    files: int
    """Files that were looked at."""
    changed: int
    """Files that migrate would change."""
    sites: int
    automatic: int
    """Sites that migrate rewrites."""
    left: int
    """Sites that need a person."""
    works: int
    """Sites that work as they stand."""
    hints: int
    """What lint says beside, of torch's own operators on a TPU: no part of `sites`, and nothing for migrate."""


class Area(TypedDict):
    """The sites of one area of rules."""

    area: str
    automatic: int
    left: int
    works: int


class Automatic(TypedDict):
    """What migrate rewrites by one rule."""

    code: str
    rule: str
    sites: int
    files: int


class Work(TypedDict):
    """What one rule leaves to a person."""

    effort: str
    """`low`, `medium` or `high`, in the judgement of the rule's author."""
    code: str
    rule: str
    why: str
    sites: list[findings.Record]


class Blocker(TypedDict):
    """Something that the code depends on and that a TPU does not run."""

    what: str
    stand_in: str
    sites: list[findings.Record]


class Step(TypedDict):
    """A command to run."""

    command: str
    why: str


class Document(TypedDict):
    """What plan prints."""

    version: int
    summary: Summary
    areas: list[Area]
    automatic: list[Automatic]
    work: list[Work]
    """Lowest effort first."""
    blockers: list[Blocker]
    steps: list[Step]
    """In the order to take them."""
    failures: list[findings.Unread]
    skipped: list[findings.Unread]
    notes: list[str]
    """Remarks on the run."""


def render(plan: Plan, sheet: Sheet) -> None:
    """Write one JSON object."""
    told = plan.account
    content: Document = {
        "version": VERSION,
        "summary": {
            "files": plan.files,
            "changed": plan.changed,
            "sites": plan.sites,
            "automatic": count(told.rewritten),
            "left": count(told.left),
            "works": count(told.works),
            "hints": count(told.hints),
        },
        "areas": [
            {"area": area.name, "automatic": area.automatic, "left": area.left, "works": area.works}
            for area in plan.areas
        ],
        "automatic": [
            {"code": group.rule.code, "rule": group.rule.name, "sites": len(group.sites), "files": group.files}
            for group in told.rewritten
        ],
        "work": [_work(group) for group in told.left],
        "blockers": [
            {"what": blocker.what, "stand_in": blocker.stand_in, "sites": _records(blocker.sites)}
            for blocker in plan.blockers
        ],
        "steps": [{"command": step.command, "why": step.why} for step in plan.steps],
        "failures": findings.records(_ended(plan, Status.FAILED)),
        "skipped": findings.records(_ended(plan, Status.SKIPPED)),
        "notes": list(plan.notes),
    }
    sheet.file.write(json.dumps(content, indent=2) + "\n")


def _work(group: Group) -> Work:
    rule = group.rule
    return {
        "effort": str(rule.effort),
        "code": rule.code,
        "rule": rule.name,
        "why": " ".join(rule.why.split()),
        "sites": _records(group.sites),
    }


def _records(sites: tuple[Site, ...]) -> list[findings.Record]:
    return [findings.record(path, finding) for path, finding in sites]


def _ended(plan: Plan, status: Status) -> tuple[Outcome, ...]:
    return tuple(outcome for outcome in plan.account.unread if outcome.status is status)
