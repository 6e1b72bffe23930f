import json

from small_core import RULES, Command


def test_the_list_has_every_rule(tpuport: Command) -> None:
    done = tpuport("rules")
    assert done.code == 0
    assert done.out.splitlines()[0] == "TPU101  cuda-call      warning  safe    cuda-call message"
    assert len(done.out.splitlines()) == len(RULES) + 2


def test_one_rule_is_explained_by_code_or_name(tpuport: Command) -> None:
    done = tpuport("rules", "TPU101")
    assert done.code == 0
    for part in ("cuda-call message", "cuda-call why", "https://example.org", "safe: CUDA and CPU keep", "a note"):
        assert part in done.out
    assert "  - x.cuda()\n  + x.to(device)\n" in done.out
    assert tpuport("rules", "cuda-call").out == done.out
    assert "stays as it is" in tpuport("rules", "TPU201").out


def test_markdown_has_a_section_a_rule(tpuport: Command) -> None:
    whole = tpuport("rules", "--format", "markdown").out
    assert whole.count("\n## ") == len(RULES)
    one = tpuport("rules", "half-call", "--format", "markdown").out
    assert one.startswith("## TPU102 half-call\n\nHalf-call message.\n")
    assert "`# tpuport: ignore[TPU102] reason`" in one
    assert "Before (with `--unsafe`):\n\n```python\nx.half()\n```\n\nAfter:" in one
    assert one in whole


def test_an_unknown_rule_is_2_and_the_nearest_is_named(tpuport: Command) -> None:
    done = tpuport("rules", "TPU110")
    assert done.code == 2
    assert "TPU10" in done.err


def test_json_is_a_list_either_way(tpuport: Command) -> None:
    assert [rule["code"] for rule in json.loads(tpuport("rules", "--json").out)["rules"]] == [
        rule.code for rule in RULES
    ]
    assert json.loads(tpuport("rules", "TPU102", "--format", "json").out)["rules"][0]["safety"] == "unsafe"


def test_what_codes_begin_with_lists_those_rules(tpuport: Command) -> None:
    done = tpuport("rules", "tpu1")
    assert done.code == 0
    assert [row.split()[0] for row in done.out.splitlines() if row.startswith("TPU")] == ["TPU101", "TPU102"]
