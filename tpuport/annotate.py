"""Comments at the sites that need a person."""

import ast
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator

from tpuport.model import Finding, Severity
from tpuport.source.positions import renumbered

MARK = "TODO(tpuport): "


def annotate(source: str, findings: Iterable[Finding]) -> str:
    """The Python `source` with a comment above each statement that needs a person; see `commented`.

    Raises SyntaxError when `source` does not parse.
    """
    left = [finding for finding in findings if needs_a_person(finding)]
    if not left:
        return source
    starts = dict(_starts(ast.parse(source), source.split("\n")))
    return commented(source, left, lambda line: next((starts[at] for at in range(line, 0, -1) if at in starts), line))


def needs_a_person(finding: Finding) -> bool:
    """Whether a finding has no fix, and is more than information."""
    return finding.severity is not Severity.INFO and not finding.fixable


def commented(source: str, findings: Iterable[Finding], above: Callable[[int], int], *, indented: bool = True) -> str:
    """`source` with a comment line for each of `findings`, whose spans are in it.

    `above` tells for a line which one a comment on it goes above. Lines that a comment names are those of the result.
    What has a comment already gets none, so that a second run adds nothing.
    """
    lines = source.split("\n")
    wanted: dict[int, list[str]] = {}
    for finding in findings:
        line = above(finding.span.line)
        text = f"{MARK}{finding.code} {finding.reason or finding.message}"
        if text not in wanted.setdefault(line, []) and not _has_comment(lines, line, finding.code):
            wanted[line].append(text)
    places = sorted(line for line, texts in wanted.items() for _ in texts)
    for line in sorted(wanted, reverse=True):
        code = lines[line - 1]
        indent = code[: len(code) - len(code.lstrip())] if indented else ""
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


def _has_comment(lines: list[str], line: int, code: str) -> bool:
    """Whether a comment of ours about that rule stands above the line."""
    above = line - 1
    while above and lines[above - 1].lstrip().startswith("#"):
        if f"{MARK}{code} " in lines[above - 1]:
            return True
        above -= 1
    return False
