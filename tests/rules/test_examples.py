"""Every example of every rule: the exact output, which compiles and which a second run leaves alone."""

from pathlib import Path

import pytest

from tpuport import catalog, kinds
from tpuport.model import Example, Facts, Project, Rule, Severity

RULES = catalog.load(examples=True).rules
NEWEST = "2.11"


def examples(changed: bool) -> list[pytest.ParameterSet]:  # type: ignore[name-defined]
    return [
        pytest.param(rule, example, id=f"{rule.name}-{number}")
        for rule in RULES
        for number, example in enumerate(rule.examples)
        if (example.after is not None) is changed
    ]


def project(example: Example) -> Project:
    return Project(min_torch=example.min_torch or NEWEST, facts=Facts(uses_torch=True))


def rewritten(example: Example, text: str, *, unsafe: bool) -> str:
    handler = kinds.handler_of(Path(example.file))
    return handler.rewrite(text, project(example), RULES, unsafe=unsafe, line_length=None).text


def test_an_example_stands_in_a_file_that_its_rule_is_for() -> None:
    for rule in RULES:
        assert {kinds.of(example.file) for example in rule.examples} <= set(rule.files), rule.name


@pytest.mark.parametrize(("rule", "example"), examples(changed=True))
def test_example_becomes_its_after(rule: Rule, example: Example) -> None:
    found = kinds.handler_of(Path(example.file)).findings(example.before, project(example), RULES)
    assert rule.code in {finding.code for finding in found}
    assert rewritten(example, example.before, unsafe=example.unsafe) == example.after


@pytest.mark.parametrize(("rule", "example"), examples(changed=True))
def test_result_compiles_and_stays(rule: Rule, example: Example) -> None:
    assert example.after is not None
    if kinds.of(example.file) == kinds.PYTHON:
        compile(example.after, rule.name, "exec")
    assert rewritten(example, example.after, unsafe=True) == example.after


@pytest.mark.parametrize(("rule", "example"), examples(changed=True))
def test_result_is_no_finding_of_lint(rule: Rule, example: Example) -> None:
    """A port that is done leaves CI green."""
    assert example.after is not None
    found = kinds.handler_of(Path(example.file)).findings(example.after, project(example), RULES)
    assert [finding for finding in found if finding.code == rule.code and finding.severity is not Severity.INFO] == []


@pytest.mark.parametrize(("rule", "example"), examples(changed=False))
def test_example_stays_unchanged(rule: Rule, example: Example) -> None:
    assert rule.examples
    assert rewritten(example, example.before, unsafe=True) == example.before


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rule_has_an_example_that_must_not_change(rule: Rule) -> None:
    assert any(example.after is None for example in rule.examples)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rule_that_fixes_has_an_example_that_changes(rule: Rule) -> None:
    fixes = rule.safety != "manual"
    assert any(example.after is not None for example in rule.examples) is fixes
