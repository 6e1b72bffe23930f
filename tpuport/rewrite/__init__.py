"""From findings to new text: edits applied with libcst, run until nothing is left to fix, and checked before use."""

import ast
import builtins
import io
import tokenize
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tpuport.analysis.module import Module
from tpuport.errors import TpuportError
from tpuport.fixes import Rewritten, applicable
from tpuport.match import match
from tpuport.model import (
    Edit,
    Finding,
    GuardStatement,
    InsertAfter,
    InsertBefore,
    Project,
    RemoveStatement,
    Rename,
    Rule,
    Safety,
    Span,
    UnwrapWith,
)
from tpuport.rewrite import hoist, imports
from tpuport.rewrite.import_edits import drop_imports, import_module
from tpuport.rewrite.transform import apply

ROUNDS = 4
"""How often the rewritten text is matched again; real files need one round and a look."""

DEFAULT_WIDTH = 88


def rewrite(
    source: str, project: Project, rules: Sequence[Rule], *, unsafe: bool = False, line_length: int | None = None
) -> Rewritten:
    """Fix what can be fixed in `source`.

    A chain is fixed whole or not at all: one unsafe member holds all of it back unless `unsafe`. A chain whose result
    would not parse, would lose a comment or would use a name that nothing sets is left, with that for its reason.
    Raises SyntaxError when `source` does not parse, and TpuportError when the rewriting would not come to an end.
    """
    module, found = match(source, project, rules)
    chosen = applicable(found, unsafe)
    width = line_length or _width(source)
    try:
        return _rewrite_all(source, project, rules, unsafe, width)
    except TpuportError:
        refused: list[Finding] = []
        text = _rewrite_sound(module, project, _chains(chosen), width, [], refused)
    fixed = [finding for finding in chosen if finding not in refused]
    left = [replace(f, edits=(), safety=Safety.MANUAL, reason=REFUSED) if f in refused else f for f in found]
    return Rewritten(text, tuple(fixed), tuple(finding for finding in left if finding not in fixed))


REFUSED = "the rewriter makes no sound code of it: please report this file"


def _chains(found: Sequence[Finding]) -> list[list[Finding]]:
    """The findings that must be fixed together."""
    groups: dict[object, list[Finding]] = {}
    for number, finding in enumerate(found):
        key = ("chain", finding.chain) if finding.chain is not None else number
        groups.setdefault(key, []).append(finding)
    return list(groups.values())


def _rewrite_sound(
    module: Module,
    project: Project,
    chains: list[list[Finding]],
    width: int,
    accepted: list[Finding],
    refused: list[Finding],
) -> str:
    """The text with as many chains fixed as give sound code; fills `accepted` and `refused`, halving where it fails."""
    wanted = [*accepted, *(finding for chain in chains for finding in chain)]
    try:
        text = _apply(module, project, wanted, width) if wanted else module.source
        _check(module.source, text)
    except TpuportError:
        if len(chains) > 1:
            half = len(chains) // 2
            _rewrite_sound(module, project, chains[:half], width, accepted, refused)
            return _rewrite_sound(module, project, chains[half:], width, accepted, refused)
        refused.extend(finding for chain in chains for finding in chain)
        return _apply(module, project, accepted, width) if accepted else module.source
    accepted[:] = wanted
    return text


def _rewrite_all(source: str, project: Project, rules: Sequence[Rule], unsafe: bool, width: int) -> Rewritten:
    module, found = match(source, project, rules)
    chosen = applicable(found, unsafe)
    text, fixing = source, chosen
    for _ in range(ROUNDS):
        if not fixing:
            break
        text = _apply(module, project, fixing, width)
        _check(source, text)
        module, again = match(text, project, rules)
        fixing = applicable(again, unsafe)
    if fixing:
        lines = ", ".join(str(finding.span.line) for finding in fixing)
        raise TpuportError(f"the rewrite does not settle: lines {lines} of the result would be changed again")
    kept = [finding for finding in found if finding not in chosen]
    return Rewritten(text, tuple(chosen), tuple(kept))


def _width(source: str) -> int:
    """The widest line that the file's own code allows itself, within reason."""
    lines = [len(line.split("#")[0].rstrip()) for line in source.splitlines()]
    return min(max([DEFAULT_WIDTH, *lines]), 120)


def _apply(module: Module, project: Project, found: Sequence[Finding], width: int) -> str:
    edits: list[Edit] = list(dict.fromkeys(edit for finding in found for edit in finding.edits))
    removed = [edit.span for edit in edits if isinstance(edit, RemoveStatement)]
    if removed:
        edits = [edit for edit in edits if isinstance(edit, OF_STATEMENTS) or not _is_inside(edit.span, removed)]
    hoisted = hoist.plan(module, project, edits)
    renames = imports.plan(module, [edit for edit in edits if isinstance(edit, Rename)], project.facts.imported_names)
    text = apply(module.source, edits, hoisted, renames, imports.torch_name(module), width)
    after = _parsed(text)
    unused = imports.newly_unused(module, after, project.facts.imported_names)
    if unused:
        text = drop_imports(text, unused)
        after = _parsed(text)
    for name in ("torch", "os"):
        if imports.lacks(after, name) and not imports.lacks(module, name):
            text = import_module(text, name)
    return text if module.source.startswith(("\n", "\r")) else text.lstrip("\r\n")


OF_STATEMENTS = RemoveStatement | GuardStatement | InsertBefore | InsertAfter | UnwrapWith


def _is_inside(span: Span, others: Sequence[Span]) -> bool:
    return any(other.contains(span) for other in others)


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


def _check(source: str, text: str) -> None:
    """Raise TpuportError unless the text parses, keeps every comment and docstring, and sets every name it uses."""
    try:
        lost = strings(ast.parse(source)) - strings(ast.parse(text))
        lost += comments(source) - comments(text)
    except (SyntaxError, tokenize.TokenError) as error:
        raise TpuportError(f"the rewrite would not parse any more: {error}", hint="please report this file") from error
    unknown = hoist.unbound(Module(text)) - hoist.unbound(Module(source)) - set(dir(builtins))
    if unknown:
        raise TpuportError(f"the rewrite would use {min(unknown)!r} without setting it", hint="please report this file")
    if lost:
        raise TpuportError(
            f"the rewrite would lose the comment or docstring {next(iter(lost))!r}", hint="please report this file"
        )
