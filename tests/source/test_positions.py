from dataclasses import replace

from tpuport.model import Finding, Safety, Severity, Span
from tpuport.source.positions import moved


def at(line: int, column: int = 0) -> Finding:
    return Finding("X1", "x", "m", Span(line, column, line, column + 1), Severity.ERROR, Safety.MANUAL)


def test_findings_move_with_their_lines() -> None:
    old = "a\nb\nc\nd\n"
    new = "import x\na\nB\nB2\nc\n"
    assert [finding.span.line for finding in moved([at(1), at(2), at(3)], old, new)] == [2, 3, 5]
    assert moved([at(3, 4)], old, new)[0].span == Span(5, 4, 5, 5)


def test_lines_that_a_reason_names_move_too() -> None:
    finding = replace(at(3), message="line 1 of 12", reason="it stays with line 2: baseline 2")
    (after,) = moved([finding], "a\nb\nc\n", "import x\nimport y\na\nb\nc\n")
    assert (after.message, after.reason) == ("line 3 of 12", "it stays with line 4: baseline 2")


def test_a_line_that_is_gone_points_at_what_is_there() -> None:
    assert moved([at(2)], "a\nb\n", "a\n")[0].span.line >= 1
    assert moved([at(1)], "a", "")[0].span.line == 1
