import tomllib
from pathlib import Path

import pytest

from tpuport import catalog
from tpuport.errors import ConfigError

FILES = sorted(catalog.rules_directory().rglob("*.toml"))


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_examples_come_last_so_that_the_rest_stands_alone(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    whole, head = tomllib.loads(text), tomllib.loads(text.partition(catalog.EXAMPLES)[0])
    assert whole.pop("examples")
    assert head == whole


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('check = "cuda_call"\nwords = "cuda"', "write a list of texts"),
        ('check = "cuda_call"\nwords = ["cuda", 1]', "write a list of texts"),
        ('words = ["cuda"]\nmap = {names = {"torch.cuda.x" = ""}}', "for a rule with a check"),
    ],
)
def test_words_of_a_rule_are_texts_for_its_check(tmp_path: Path, body: str, said: str) -> None:
    text = dict.fromkeys(catalog.REQUIRED, "x") | {
        "name": "odd",
        "code": "XX1",
        "severity": "error",
        "safety": "manual",
    }
    head = "\n".join(f'{key} = "{value}"' for key, value in text.items())
    (tmp_path / "odd.toml").write_text(f"{head}\n{body}\n")
    with pytest.raises(ConfigError) as caught:
        catalog.load((tmp_path,))
    assert said in f"{caught.value} {caught.value.hint}"


def test_rules_without_examples_are_otherwise_the_same() -> None:
    with_examples, without = catalog.load(examples=True).rules, catalog.load().rules
    assert [rule.code for rule in with_examples] == [rule.code for rule in without]
    assert all(rule.examples for rule in with_examples)
    assert not any(rule.examples for rule in without)
