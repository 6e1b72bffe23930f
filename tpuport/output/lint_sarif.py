"""Lint findings as SARIF 2.1.0, with the rules, the safe fixes, and fingerprints that survive line moves."""

import difflib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tpuport import __version__
from tpuport.engine import Report
from tpuport.fingerprint import fingerprints
from tpuport.model import Finding, Outcome, Rule, Severity, Status
from tpuport.output.ci import relative
from tpuport.output.findings import placed_sentence
from tpuport.output.style import Sheet
from tpuport.source.text import lines

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_SNIPPET = 300


def render(report: Report, sheet: Sheet) -> None:
    """Write one run. Columns count characters; files are relative to %SRCROOT%, the top of the checkout."""
    rules = {rule.code: index for index, rule in enumerate(report.rules)}
    results = [result for outcome in report.outcomes for result in _results(outcome, rules, report.fixes)]
    failed = report.of(Status.FAILED)
    run = {
        "tool": {
            "driver": {
                "name": "tpuport",
                "semanticVersion": __version__,
                "rules": [_rule(rule) for rule in report.rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "The top of the checkout."}}},
        "invocations": [
            {
                "executionSuccessful": not failed,
                "toolExecutionNotifications": [
                    *(_notification(outcome, "error") for outcome in failed),
                    *(_notification(outcome, "note") for outcome in report.of(Status.SKIPPED)),
                ],
            }
        ],
        "results": results,
    }
    sheet.file.write(json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n")


def _rule(rule: Rule) -> dict[str, Any]:
    described: dict[str, Any] = {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": f"{rule.why}\n\nSee `tpuport rules {rule.code}`.\n\n{rule.reference}"},
        "defaultConfiguration": {"level": _LEVEL[rule.severity]},
        "properties": {"tags": [rule.area], "fix": str(rule.safety)},
    }
    if rule.reference.startswith("https://"):
        described["helpUri"] = rule.reference
    return described


def _results(outcome: Outcome, rules: dict[str, int], fixes: dict[Path, Outcome]) -> Iterator[dict[str, Any]]:
    file = relative(outcome.path)
    fix = _fix(fixes[outcome.path], file) if outcome.path in fixes else None
    for finding, fingerprint in fingerprints(file, (*outcome.findings, *outcome.ignored)):
        result: dict[str, Any] = {
            "ruleId": finding.code,
            "level": _LEVEL[finding.severity],
            "message": {"text": placed_sentence(finding)},
            "locations": [_location(file, finding)],
            "partialFingerprints": {"tpuportFinding/v1": fingerprint},
        }
        if finding.code in rules:
            result["ruleIndex"] = rules[finding.code]
        if finding.ignored is not None:
            result["suppressions"] = [{"kind": "inSource", "justification": finding.ignored}]
        elif fix is not None and finding.fixable:
            result["fixes"] = [fix]
            fix = None  # the file's fixes are one set of edits, which hang together: given once
        yield result


def _location(file: str, finding: Finding) -> dict[str, Any]:
    span = finding.span
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": _artifact(file),
            "region": {
                "startLine": span.line,
                "startColumn": span.column + 1,
                "endLine": span.end_line,
                "endColumn": span.end_column + 1,
                "snippet": {"text": finding.line_text[:_SNIPPET]},
            },
        }
    }
    if finding.scope:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.scope}]
    return location


def _artifact(file: str) -> dict[str, str]:
    uri = quote(file.encode(errors="surrogateescape"))
    return {"uri": f"file://{uri}"} if file.startswith("/") else {"uri": uri, "uriBaseId": "%SRCROOT%"}


def _notification(outcome: Outcome, level: str) -> dict[str, Any]:
    return {
        "level": level,
        "message": {"text": f"{outcome.status}: {outcome.reason}"},
        "locations": [{"physicalLocation": {"artifactLocation": _artifact(relative(outcome.path))}}],
    }


def _fix(fixed: Outcome, file: str) -> dict[str, Any]:
    """All safe fixes of a file as replacements of whole lines."""
    old, new = lines(fixed.old), lines(fixed.new)
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    replacements = [
        _replacement(first, last, "".join(new[start:stop]))
        for kind, first, last, start, stop in blocks
        if kind != "equal"
    ]
    return {
        "description": {"text": "All safe fixes of this file, as `tpuport migrate` writes them."},
        "artifactChanges": [{"artifactLocation": _artifact(file), "replacements": replacements}],
    }


def _replacement(first: int, last: int, text: str) -> dict[str, Any]:
    region = {"startLine": first + 1, "startColumn": 1, "endLine": last + 1, "endColumn": 1}
    return {"deletedRegion": region, "insertedContent": {"text": text}} if text else {"deletedRegion": region}
