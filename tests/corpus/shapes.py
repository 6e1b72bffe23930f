"""Shapes of a migrated text that cannot be meant, whatever the original was."""

import ast
from collections import Counter
from collections.abc import Iterator

AVAILABLE = "torch.accelerator.is_available()"


def emptied(old: str, new: str) -> Iterator[tuple[int, str]]:
    """Lines that assign a name to itself and did not before: in a function, one that reads an unbound local."""
    before = Counter(text for _, text in _self_assignments(old))
    for line, text in _self_assignments(new):
        if before[text] > 0:
            before[text] -= 1
        else:
            yield line, f"{text} assigns a name to itself"


def half_moved(old: str, new: str) -> Iterator[tuple[int, str]]:
    """Lines with a test for an accelerator, new in the text, that leaves `torch.cuda` unguarded in its branch."""
    before = Counter(_tests(old))
    for node in ast.walk(ast.parse(new)):
        if isinstance(node, ast.If) and AVAILABLE in (test := ast.unparse(node.test)) and "not " not in test:
            if before[test] > 0:
                before[test] -= 1
                continue
            for line, name in _unguarded(node.body):
                yield line, f"{name} below a test that moved to {AVAILABLE}"


def _self_assignments(text: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=same)) if name == same:
                yield node.lineno, ast.unparse(node)


def _tests(text: str) -> Iterator[str]:
    return (ast.unparse(node.test) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.If))


def _unguarded(body: list[ast.stmt]) -> Iterator[tuple[int, str]]:
    for node in body:
        yield from _uses(node)


def _uses(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Calls into `torch.cuda` under `node`, but for those that a test for CUDA guards."""
    if isinstance(node, ast.If | ast.IfExp) and "cuda" in ast.unparse(node.test):
        return
    if isinstance(node, ast.BoolOp) and "cuda.is_available()" in ast.unparse(node.values[0]):
        return
    if isinstance(node, ast.Call) and (name := ast.unparse(node.func)).startswith("torch.cuda."):
        yield node.lineno, name
    for child in ast.iter_child_nodes(node):
        yield from _uses(child)
