from tpuport.model import Finding, Safety, Severity, Span
from tpuport.source.positions import moved


def at(line: int, column: int = 0) -> Finding:
    return Finding("X1", "x", "m", Span(line, column, line, column + 1), Severity.ERROR, Safety.MANUAL)


def test_findings_move_with_their_lines() -> None:
    old = "a\nb\nc\nd\n"
    new = "import x\na\nB\nB2\nc\n"
    assert [finding.span.line for finding in moved([at(1), at(2), at(3)], old, new)] == [2, 3, 5]
    assert moved([at(3, 4)], old, new)[0].span == Span(5, 4, 5, 5)


def test_a_line_that_is_gone_points_at_what_is_there() -> None:
    assert moved([at(2)], "a\nb\n", "a\n")[0].span.line >= 1
    assert moved([at(1)], "a", "")[0].span.line == 1
