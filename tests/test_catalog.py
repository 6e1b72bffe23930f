import tomllib
from pathlib import Path

import pytest

from tpuport import catalog

FILES = sorted(catalog.rules_directory().rglob("*.toml"))


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_examples_come_last_so_that_the_rest_stands_alone(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    whole, head = tomllib.loads(text), tomllib.loads(text.partition(catalog.EXAMPLES)[0])
    assert whole.pop("examples")
    assert head == whole


def test_rules_without_examples_are_otherwise_the_same() -> None:
    with_examples, without = catalog.load(examples=True).rules, catalog.load().rules
    assert [rule.code for rule in with_examples] == [rule.code for rule in without]
    assert all(rule.examples for rule in with_examples)
    assert not any(rule.examples for rule in without)
