"""Lint findings as JUnit XML: a test case for each finding and each file, the form that Jenkins and others show."""

import re
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from tpuport.engine import Report
from tpuport.model import Outcome, Status
from tpuport.output.ci import relative
from tpuport.output.findings import place, sentence
from tpuport.output.style import Sheet

_NOT_XML = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
"""Characters that XML 1.0 has no form for at all."""


def render(report: Report, sheet: Sheet) -> None:
    """Write one test suite; a file without findings is a test that passed."""
    cases = [case for outcome in report.outcomes for case in _cases(outcome)]
    counts = {
        "tests": len(cases),
        "failures": len(report.findings),
        "errors": len(report.of(Status.FAILED)),
        "skipped": len(report.of(Status.SKIPPED)),
    }
    numbers = " ".join(f'{key}="{number}"' for key, number in counts.items())
    suites = " ".join(f'{key}="{number}"' for key, number in counts.items() if key != "skipped")
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<testsuites name="tpuport" {suites}>']
    lines += [f'  <testsuite name="tpuport lint" {numbers}>', *cases, "  </testsuite>", "</testsuites>"]
    sheet.file.write("\n".join(lines) + "\n")


def _cases(outcome: Outcome) -> Iterator[str]:
    file = relative(outcome.path)
    if outcome.status is Status.FAILED:
        yield _case(file, "file", f"<error message={_attribute(outcome.reason)}/>")
    elif outcome.status is Status.SKIPPED:
        yield _case(file, "file", f"<skipped message={_attribute(outcome.reason)}/>")
    elif not outcome.findings:
        yield _case(file, "file", "")
    for finding in outcome.findings:
        at = finding.place
        body = f"{file}:{place(finding)}: {finding.code} {sentence(finding)}\n{finding.line_text.strip()[:300]}"
        cell = f"cell {finding.cell.number}, " if finding.cell else ""
        name = f"{finding.code} {finding.rule}, {cell}line {at.line}, column {at.column + 1}"
        said = _attribute(sentence(finding))
        kind = _attribute(str(finding.severity))
        yield _case(file, name, f"<failure message={said} type={kind}>{_text(body)}</failure>")


def _case(file: str, name: str, body: str) -> str:
    head = f"    <testcase classname={_attribute(file)} name={_attribute(name)}"
    return f"{head}>{body}</testcase>" if body else f"{head}/>"


def _attribute(text: str) -> str:
    return quoteattr(_NOT_XML.sub("?", text))


def _text(text: str) -> str:
    return escape(_NOT_XML.sub("?", text))
