"""Imports of PyTorch/XLA, which go when nothing of it is left."""

import ast
from collections.abc import Iterator

from tpuport.analysis.module import Module, dotted
from tpuport.analysis.xla import is_xla
from tpuport.draft import Context, Draft, Role
from tpuport.model import RemoveStatement, Rule

IMPORTERS = {
    "import_module",
    "__import__",
    "find_spec",
    "importorskip",
    "is_package_available",
    "_is_package_available",
}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every import, and for imports by name."""
    module = context.module
    imports: list[ast.Import | ast.ImportFrom] = [*module.of_type(ast.Import), *module.of_type(ast.ImportFrom)]
    for node in imports:
        names = _imported(node)
        if not any(map(is_xla, names)):
            continue
        if reason := _why_it_stays(module, node, names):
            yield Draft(rule, node, Role.BLOCKS, reason=reason)
        else:
            yield Draft(rule, node, Role.MOVES, (RemoveStatement(module.span(node)),))
    for call in module.of_type(ast.Call):
        first = call.args[0] if call.args else None
        named = isinstance(first, ast.Constant) and isinstance(first.value, str) and is_xla(first.value)
        if named and dotted(call.func).rpartition(".")[2] in IMPORTERS:
            yield Draft(rule, call, Role.BLOCKS, reason="it is asked for by name: what depends on it is not followed")


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if node.module and not node.level else []


def _why_it_stays(module: Module, node: ast.Import | ast.ImportFrom, names: list[str]) -> str:
    if not all(map(is_xla, names)):
        return "it imports other things too: give them a line of their own"
    if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
        return "what a star imports is not followed"
    for child, parent in module.ancestors(node):
        if isinstance(parent, ast.Try) and child in parent.body and parent.handlers:
            return f"it is optional here, so this file runs without it too: {_used(module, node)}"
    bound = {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    for name in bound:
        scopes = [scope for scope in module.own_scopes.values() if name in scope.bindings]
        if any(not _binds_xla(binding.origin) for scope in scopes for binding in scope.bindings[name]):
            return f"`{name}` is bound to something else too, so its uses can not be followed"
    return ""


def _binds_xla(origin: str) -> bool:
    return is_xla(origin)


def _used(module: Module, node: ast.Import | ast.ImportFrom) -> str:
    bound = {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    lines = sorted(
        {module.span(n).line for n in module.of_type(ast.Name) if n.id in bound and isinstance(n.ctx, ast.Load)}
    )
    if not lines:
        return "what its absence decides has to be judged by hand"
    return (
        f"its uses on {'line' if len(lines) == 1 else 'lines'} {', '.join(map(str, lines))} have to be judged by hand"
    )
