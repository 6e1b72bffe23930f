import pytest

from tpuport import catalog
from tpuport.match import findings, match
from tpuport.model import Finding, Project
from tpuport.rewrite import rewrite

RULES = catalog.load().rules
PROJECT = Project("2.11")


def found(source: str) -> list[Finding]:
    return findings(source, PROJECT, [rule for rule in RULES if rule.code != "TP003"])


def left(source: str) -> list[tuple[int, str]]:
    return [(finding.span.line, finding.code) for finding in found(source) if finding.ignored is None]


def ignored(source: str) -> list[tuple[int, str, str | None]]:
    return [(f.span.line, f.code, f.ignored) for f in found(source) if f.ignored is not None]


@pytest.mark.parametrize(
    "comment",
    [
        "# tpuport: ignore[TP101] reason",
        "#tpuport:ignore[TP101]: reason",
        "# tpuport: ignore[ cuda-call ] - reason",
        "# tpuport: ignore[tp1]   reason",
        "# noqa: E501  # tpuport: ignore[TP101] reason  # type: ignore",
    ],
)
def test_a_comment_on_the_line_ignores_by_code_prefix_or_name(comment: str) -> None:
    source = f"x.cuda()  {comment}\ny.cuda()\n"
    assert ignored(source) == [(1, "TP101", "reason")]
    assert left(source) == [(2, "TP101")]


def test_only_the_rules_that_are_named() -> None:
    assert left("x.cuda()  # tpuport: ignore[TP102] y\n") == [(1, "TP101"), (1, "TP001")]
    assert left("x.cuda()  # tpuport: ignore[TP101,TP102] y\n") == [(1, "TP001")]


@pytest.mark.parametrize(
    "source",
    [
        "# tpuport: ignore[TP101] y\nx.cuda()\n",
        "# tpuport: ignore[TP101] y\n# more words\n\nx.cuda()\n",
        "# tpuport: ignore[TP101] y\nf(\n    x.cuda(),\n)\n",
        "f(  # tpuport: ignore[TP101] y\n    x.cuda(),\n)\n",
        "f(\n    x.cuda(),\n)  # tpuport: ignore[TP101] y\n",
        "f(\n    a,\n    x.cuda(),  # tpuport: ignore[TP101] y\n)\n",
        "f(\n    a,\n    # tpuport: ignore[TP101] y\n    x.cuda(),\n)\n",
        "f(x\n  .cuda(\n  )  # tpuport: ignore[TP101] y\n)\n",
        "def f():\n    # tpuport: ignore[TP101] y\n    return x.cuda()\n",
        "x.cuda()  # tpuport: ignore[TP101] y",
        "x.cuda()  # tpuport: ignore[TP101] y\r\n",
        "s = '''\n'''; x.cuda()  # tpuport: ignore[TP101] y\n",
        "# tpuport: ignore-file[TP101] y\nx.cuda()\n",
        "x.cuda()\n\n# tpuport: ignore-file[TP101] y\n",
        "# tpuport: off[TP101] y\nx.cuda()\n",
        "# tpuport: off[TP101] y\nx.cuda()\n# tpuport: on\n",
        "# tpuport: off[TP102,TP101] y\nx.cuda(); torch.zeros(1, device='cuda')\n# tpuport: on[TP101, TP102]\n",
    ],
)
def test_where_a_comment_reaches(source: str) -> None:
    assert left(source) == []
    assert ignored(source)[0][1:] == ("TP101", "y")


@pytest.mark.parametrize(
    "source",
    [
        "# tpuport: ignore[TP101] y\nz = 1\nx.cuda()\n",
        "f(\n    a,  # tpuport: ignore[TP101] y\n    x.cuda(),\n)\n",
        "# tpuport: off[TP101] y\nz = 1\n# tpuport: on[TP101]\nx.cuda()\n",
        "if a:  # tpuport: ignore[TP101] y\n    x.cuda()\n",
        "x.cuda()\n# tpuport: off[TP101] y\n",
    ],
)
def test_where_it_does_not_reach_and_is_unused(source: str) -> None:
    assert sorted(code for _, code in left(source)) == ["TP001", "TP101"]
    assert not ignored(source)


def test_blocks_end_on_their_own() -> None:
    source = (
        "# tpuport: off[TP101] a\n# tpuport: off[TP102] b\nx.cuda()\ntorch.zeros(1, device='cuda')\n"
        "# tpuport: on[TP101]\ntorch.zeros(1, device='cuda')\nx.cuda()\n"
    )
    assert left(source) == [(7, "TP101")]


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("# tpuport: ingore[TP101]", "did you mean ignore?"),
        ("# tpuport: please", "valid: ignore, ignore-file, off, on"),
        ("# tpuport:", "not a comment that tpuport knows"),
        ("# tpuport: ignore", "names no rule"),
        ("# tpuport: ignore[] because", "names no rule"),
        ("# tpuport: off", "names no rule"),
        ("# tpuport: on", "no open `off`"),
        ("# tpuport: ignore[TP10l]", "there is no rule TP10l; did you mean TP"),
        ("# tpuport: ignore[cuda-cal]", "did you mean cuda-call?"),
    ],
)
def test_a_comment_without_effect_is_a_finding(comment: str, message: str) -> None:
    source = f"x.cuda()  {comment}\n"
    assert [finding.code for finding in found(source)] == ["TP101", "TP002"]
    assert message in found(source)[1].message
    assert found(source)[1].span[:2] == (1, 10)


@pytest.mark.parametrize(
    "text", ["'# tpuport: ignore[TP101] y'", '"""\n# tpuport: ignore-file[TP101] y\n"""', "f'# tpuport: off[TP101]'"]
)
def test_text_is_no_comment(text: str) -> None:
    assert [code for _, code in left(f"s = {text}; x.cuda()\n")] == ["TP101"]


def test_a_missing_reason_is_a_finding_of_its_own_rule() -> None:
    source = "x.cuda()  # tpuport: ignore[TP101]\ny.cuda()  # tpuport: ignore[TP101] z\n"
    bare = [f for f in findings(source, PROJECT, RULES) if f.code == "TP003"]
    assert [finding.span.line for finding in bare] == [1]


def test_what_is_ignored_is_not_rewritten() -> None:
    source = "import torch\n\nx = a.cuda()  # tpuport: ignore[TP101] y\nn = torch.cuda.device_count()\n"
    text = rewrite(source, PROJECT, RULES).text
    assert "x = a.cuda()  # tpuport: ignore[TP101] y\n" in text
    assert "torch.accelerator.device_count()" in text


@pytest.mark.parametrize("line", [3, 4])
def test_a_chain_with_an_ignored_member_does_not_move(line: int) -> None:
    lines = ["import torch", "", "if torch.cuda.is_available():", "    x = x.cuda()", ""]
    lines[line - 1] += "  # tpuport: ignore[TP] y"
    source = "\n".join(lines)
    assert rewrite(source, PROJECT, RULES).text == source
    _, rest = match(source, PROJECT, RULES)
    assert [(finding.span.line, finding.fixable) for finding in rest] == [(7 - line, False)]
    assert f"line {line}, which a comment keeps" in rest[0].reason


def test_findings_say_where_they_are() -> None:
    source = "class A:\n    @wrap\n    def f(self):\n        def g(): return x.cuda()\n        y.cuda()\nz.cuda()\n"
    assert [(f.scope, f.line_text.strip()) for f in found(source)] == [
        ("A.f.g", "def g(): return x.cuda()"),
        ("A.f", "y.cuda()"),
        ("", "z.cuda()"),
    ]
