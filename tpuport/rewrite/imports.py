"""Import upkeep: names re-pointed where all their uses move, imports added and unused ones dropped."""

import ast
from collections.abc import Collection
from dataclasses import dataclass, field

from tpuport.analysis.module import Module
from tpuport.analysis.scopes import Binding, Kind
from tpuport.model import Rename, Span


@dataclass(frozen=True, slots=True)
class Rebind:
    """In the import statement at `span`, let `name` (its local name) come from `origin` (a full name)."""

    span: Span
    name: str
    origin: str


@dataclass(slots=True)
class ImportPlan:
    """What becomes of each rename's text, and which imports change."""

    texts: dict[Span, str | None] = field(default_factory=dict)
    """The new dotted name of each rename by its span; None where the local name stays and its import moves."""
    rebinds: list[Rebind] = field(default_factory=list)


def torch_name(module: Module) -> str:
    """The module-level name of the package torch; `torch` when it is not imported yet."""
    for name, bindings in module.scope.bindings.items():
        if all(binding.kind is Kind.IMPORT and binding.origin == "torch" for binding in bindings):
            return name
    return "torch"


def _root(node: ast.expr) -> ast.Name | None:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def _moved_origin(rename: Rename, origin: str) -> str:
    """Where the imported name would have to come from for the rest of the chain to stay as it is; empty if nowhere."""
    rest = rename.old[len(origin) :]
    return rename.new.removesuffix(rest) if rename.new.endswith(rest) and rename.new != rest else ""


def plan(module: Module, renames: list[Rename], shared: Collection[str] = ()) -> ImportPlan:
    """Decide for each imported name whether its import moves, or its uses are spelled out from `torch`.

    Names in `shared`, and those that `__all__` names, may be imported from here: their imports stay.
    """
    kept = {*shared, *exported(module)}
    result = ImportPlan()
    by_span = {rename.span: rename for rename in renames}
    nodes = {module.span(use.node): use.node for use in module.uses if module.span(use.node) in by_span}
    alias = torch_name(module)
    groups: dict[tuple[int, str], list[Rename]] = {}
    bindings: dict[tuple[int, str], list[Binding]] = {}
    for span, rename in by_span.items():
        result.texts[span] = alias + rename.new.removeprefix("torch")
        root = _root(nodes[span]) if span in nodes else None
        found = module.lookup(root) if root else None
        if root is not None and found is not None:
            key = (id(found[0]), root.id)
            groups.setdefault(key, []).append(rename)
            bindings[key] = found[1]
    for (scope, name), members in groups.items():
        rebind = None if name in kept else _rebind(module, scope, name, members, bindings[scope, name])
        if rebind is not None:
            result.rebinds.append(rebind)
            result.texts.update({member.span: None for member in members})
    return result


def _rebind(module: Module, scope: int, name: str, members: list[Rename], bound: list[Binding]) -> Rebind | None:
    if len(bound) != 1 or bound[0].kind is not Kind.IMPORT or "." not in bound[0].origin:
        return None
    origins = {_moved_origin(member, bound[0].origin) for member in members}
    loads = sum(
        1
        for node in module.of_type(ast.Name)
        if node.id == name and (found := module.lookup(node)) is not None and id(found[0]) == scope
    )
    if len(origins) != 1 or "" in origins or loads != len(members):
        return None
    return Rebind(module.span(bound[0].node), name, origins.pop())


def exported(module: Module) -> set[object]:
    """What the module's `__all__` names."""
    return {
        node.value
        for assign in module.of_type(ast.Assign)
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in assign.targets)
        for node in ast.walk(assign.value)
        if isinstance(node, ast.Constant)
    }


def newly_unused(before: Module, after: Module, shared: Collection[str] = ()) -> list[tuple[Span, str]]:
    """Imports from torch, in `after`, whose names the old text used and the new one does not."""
    found: list[tuple[Span, str]] = []
    kept = {*shared, *exported(after)}
    used_before, used_after = _loaded(before), _loaded(after)
    for name, bindings in after.scope.bindings.items():
        if name in kept or name in used_after or name not in used_before:
            continue
        moved = (b for b in bindings if b.kind is Kind.IMPORT and b.origin.startswith("torch."))
        found.extend((after.span(binding.node), name) for binding in moved)
    return found


def _loaded(module: Module) -> set[str]:
    return {node.id for node in module.of_type(ast.Name) if isinstance(node.ctx, ast.Load)}


def lacks(module: Module, name: str) -> bool:
    """Whether the text uses a module by its `name` with nothing that binds it there."""
    return any(
        node.id == name and module.lookup(node) is None
        for node in module.of_type(ast.Name)
        if isinstance(node.ctx, ast.Load)
    )
