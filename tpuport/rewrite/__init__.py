"""From findings to new text: edits applied with libcst, run until nothing is left to fix, and checked before use."""

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tpuport.analysis.module import Module
from tpuport.errors import TpuportError
from tpuport.match import match
from tpuport.model import Edit, Finding, Project, Rename, Rule, Safety
from tpuport.rewrite import hoist, imports
from tpuport.rewrite.import_edits import drop_imports, import_torch
from tpuport.rewrite.transform import apply

ROUNDS = 4
"""How often the rewritten text is matched again; real files need one round and a look."""

DEFAULT_WIDTH = 88


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A migrated text: the findings that were fixed and those that remain, with spans in the old text."""

    text: str
    fixed: tuple[Finding, ...]
    remaining: tuple[Finding, ...]


def rewrite(
    source: str, project: Project, rules: Sequence[Rule], *, unsafe: bool = False, line_length: int | None = None
) -> Rewritten:
    """Fix what can be fixed in `source`.

    A chain is fixed whole or not at all: one unsafe member holds all of it back unless `unsafe`. Raises SyntaxError
    when `source` does not parse, and TpuportError when the result would not parse, would lose a comment or would not
    settle: then nothing of it may be used.
    """
    module, found = match(source, project, rules)
    chosen = applicable(found, unsafe)
    text, fixing = source, chosen
    for _ in range(ROUNDS):
        if not fixing:
            break
        text = _apply(module, project, fixing, line_length or _width(source))
        module, again = _check(source, text, project, rules)
        fixing = applicable(again, unsafe)
    if fixing:
        lines = ", ".join(str(finding.span.line) for finding in fixing)
        raise TpuportError(f"the rewrite does not settle: lines {lines} of the result would be changed again")
    kept = [finding for finding in found if finding not in chosen]
    return Rewritten(text, tuple(chosen), tuple(kept))


def applicable(found: Sequence[Finding], unsafe: bool) -> list[Finding]:
    """The findings whose edits may be applied, with their whole chains."""
    held = {f.chain for f in found if f.edits and f.safety is Safety.UNSAFE and not unsafe and f.chain is not None}
    return [
        finding
        for finding in found
        if finding.edits and finding.chain not in held and (unsafe or finding.safety is Safety.SAFE)
    ]


def _width(source: str) -> int:
    """The widest line that the file's own code allows itself, within reason."""
    lines = [len(line.split("#")[0].rstrip()) for line in source.splitlines()]
    return min(max([DEFAULT_WIDTH, *lines]), 120)


def _apply(module: Module, project: Project, found: Sequence[Finding], width: int) -> str:
    edits: list[Edit] = list(dict.fromkeys(edit for finding in found for edit in finding.edits))
    hoisted = hoist.plan(module, project, edits)
    renames = imports.plan(module, [edit for edit in edits if isinstance(edit, Rename)], project.imported_names)
    text = apply(module.source, edits, hoisted, renames, imports.torch_name(module), width)
    after = _parsed(text)
    unused = imports.newly_unused(module, after, project.imported_names)
    if unused:
        text = drop_imports(text, unused)
        after = _parsed(text)
    return import_torch(text) if imports.lacks_torch(after) else text


def _parsed(text: str) -> Module:
    try:
        return Module(text)
    except SyntaxError as error:
        raise TpuportError(f"the rewrite would not parse any more: {error}", hint="please report this file") from error


def comments(source: str) -> Counter[str]:
    """Every comment of a text, with how often it occurs."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return Counter(token.string.rstrip() for token in tokens if token.type == tokenize.COMMENT)


def strings(tree: ast.Module) -> Counter[str]:
    """Every docstring and other string that stands as a statement, with how often it occurs."""
    return Counter(
        node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )


def _check(source: str, text: str, project: Project, rules: Sequence[Rule]) -> tuple[Module, list[Finding]]:
    try:
        lost = strings(ast.parse(source)) - strings(ast.parse(text))
        lost += comments(source) - comments(text)
    except (SyntaxError, tokenize.TokenError) as error:
        raise TpuportError(f"the rewrite would not parse any more: {error}", hint="please report this file") from error
    unknown = hoist.unbound(Module(text)) - hoist.unbound(Module(source))
    if unknown:
        raise TpuportError(f"the rewrite would use {min(unknown)!r} without setting it", hint="please report this file")
    if lost:
        raise TpuportError(
            f"the rewrite would lose the comment or docstring {next(iter(lost))!r}", hint="please report this file"
        )
    return match(text, project, rules)
