"""Comments at the sites that need a person."""

import ast
from bisect import bisect_right
from collections.abc import Iterable, Iterator

from tpuport.model import Finding, Severity
from tpuport.source.positions import renumbered

MARK = "TODO(tpuport): "


def annotate(source: str, findings: Iterable[Finding]) -> str:
    """`source` with a comment line above each statement that holds a finding with no fix.

    The spans of `findings` are those of `source`; lines that a comment names are those of the result. Findings that are
    information only get no comment, nor do those that have one already, so that a second run adds nothing. Raises
    SyntaxError when `source` does not parse.
    """
    lines = source.split("\n")
    starts = dict(_starts(ast.parse(source), lines))
    wanted: dict[int, list[str]] = {}
    for finding in findings:
        if finding.severity is Severity.INFO or finding.fixable:
            continue
        line = next((starts[at] for at in range(finding.span.line, 0, -1) if at in starts), finding.span.line)
        text = f"{MARK}{finding.code} {finding.reason or finding.message}"
        if text not in wanted.setdefault(line, []) and not has_comment(lines, line, finding.code):
            wanted[line].append(text)
    places = sorted(line for line, texts in wanted.items() for _ in texts)
    for line in sorted(wanted, reverse=True):
        code = lines[line - 1]
        indent = code[: len(code) - len(code.lstrip())]
        texts = [renumbered(text, lambda at: at + bisect_right(places, at)) for text in wanted[line]]
        lines[line - 1 : line - 1] = [f"{indent}# {text}" for text in texts]
    return "\n".join(lines)


def _starts(tree: ast.Module, lines: list[str]) -> Iterator[tuple[int, int]]:
    """For each line of a statement, the line that a comment on it goes above: the first one of the innermost statement.

    A statement that shares its first line with what comes before it counts as a part of that.
    """
    for node in ast.walk(tree):  # from the outside in: inner statements overrule outer ones
        if isinstance(node, ast.stmt):
            own = not lines[node.lineno - 1].encode()[: node.col_offset].strip()
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
            if own:
                yield from ((line, first) for line in range(first, (node.end_lineno or first) + 1))


def has_comment(lines: list[str], line: int, code: str) -> bool:
    """Whether a comment of ours about that rule stands above the line."""
    above = line - 1
    while above and lines[above - 1].lstrip().startswith("#"):
        if f"{MARK}{code} " in lines[above - 1]:
            return True
        above -= 1
    return False
