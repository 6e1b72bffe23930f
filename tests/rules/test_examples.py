"""Every example of every rule: the exact output, which compiles and which a second run leaves alone."""

import pytest

from tpuport import catalog
from tpuport.match import findings
from tpuport.model import Example, Project, Rule
from tpuport.rewrite import rewrite

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
    return Project(min_torch=example.min_torch or NEWEST)


@pytest.mark.parametrize(("rule", "example"), examples(changed=True))
def test_example_becomes_its_after(rule: Rule, example: Example) -> None:
    found = findings(example.before, project(example), RULES)
    assert rule.code in {finding.code for finding in found}
    assert rewrite(example.before, project(example), RULES, unsafe=example.unsafe).text == example.after


@pytest.mark.parametrize(("rule", "example"), examples(changed=True))
def test_result_compiles_and_stays(rule: Rule, example: Example) -> None:
    assert example.after is not None
    compile(example.after, rule.name, "exec")
    assert rewrite(example.after, project(example), RULES, unsafe=True).text == example.after


@pytest.mark.parametrize(("rule", "example"), examples(changed=False))
def test_example_stays_unchanged(rule: Rule, example: Example) -> None:
    assert rule.examples
    assert rewrite(example.before, project(example), RULES, unsafe=True).text == example.before


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rule_has_an_example_that_must_not_change(rule: Rule) -> None:
    assert any(example.after is None for example in rule.examples)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rule_that_fixes_has_an_example_that_changes(rule: Rule) -> None:
    fixes = rule.safety != "manual"
    assert any(example.after is not None for example in rule.examples) is fixes
