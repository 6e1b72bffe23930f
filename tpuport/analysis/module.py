"""One parsed module with everything the rules ask of it: parents, scopes, qualified names, spans, flags."""

import ast
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Any, TypeVar

from tpuport.analysis.scopes import Binding, Kind, Scope, ScopeBuilder
from tpuport.model import Span

Node = TypeVar("Node", bound=ast.AST)
Fact = TypeVar("Fact")

CANONICAL = {
    "torch.cuda.amp.autocast_mode": "torch.cuda.amp",
    "torch.cuda.amp.grad_scaler": "torch.cuda.amp",
    "torch.amp.autocast_mode": "torch.amp",
    "torch.amp.grad_scaler": "torch.amp",
    "torch.cuda.memory": "torch.cuda",
    "torch.cuda.random": "torch.cuda",
    "torch.cuda.streams": "torch.cuda",
    "torch.nn.parallel.distributed": "torch.nn.parallel",
    "torch.nn.parallel.data_parallel": "torch.nn.parallel",
    "torch.distributed.distributed_c10d": "torch.distributed",
    "torch.utils.data.dataloader": "torch.utils.data",
}
"""Modules of torch whose public names are re-exported elsewhere, with the usual place."""


@dataclass(slots=True)
class Use:
    """An attribute chain or name that resolves to `name` through the module's imports; not part of a longer chain."""

    node: ast.expr
    name: str


def once(find: "Callable[[Module], Fact]") -> "Callable[[Module], Fact]":
    """Let a function of a module find what it does once for each module."""

    def found(module: Module) -> Fact:
        if find not in module.facts:
            module.facts[find] = find(module)
        return module.facts[find]  # type: ignore[no-any-return]

    return wraps(find)(found)


def canonical(name: str) -> str:
    """`name` with a re-exporting module in place of the one that defines it."""
    head, _, leaf = name.rpartition(".")
    return f"{CANONICAL[head]}.{leaf}" if head in CANONICAL else name


def dotted(node: ast.AST) -> str:
    """The source form of a pure attribute chain (`args.cuda`), or an empty string."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


@dataclass(eq=False)
class Module:
    """A parsed source text. Raises SyntaxError or ValueError from `ast.parse`."""

    source: str
    tree: ast.Module = field(init=False)
    facts: dict[object, Any] = field(default_factory=dict, init=False, repr=False)
    """What the functions marked with `once` found, by the function."""

    def __post_init__(self) -> None:
        self.tree = ast.parse(self.source)
        built = ScopeBuilder(self.tree)
        self.scope = built.module
        self.parents = built.parents
        self.scopes = built.scopes
        self.own_scopes = built.own
        self.nodes = built.order
        self._names: dict[ast.AST, str] = {}  # holds its nodes: the id of a freed one would come back as another's
        self._names_in_scope: dict[tuple[Scope, str, int], str] = {}

    def of_type(self, kind: type[Node]) -> list[Node]:
        """All nodes of exactly that class, in source order of their first visit."""
        return self._by_type.get(kind, [])  # type: ignore[return-value]

    @cached_property
    def _by_type(self) -> dict[type[ast.AST], list[ast.AST]]:
        found: defaultdict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        for node in self.nodes:
            found[type(node)].append(node)
        return dict(found)

    # Places

    @cached_property
    def lines(self) -> list[str]:
        """Lines without their ends, split as Python's tokenizer splits them."""
        return self.source.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    def _column(self, line: int, offset: int) -> int:
        text = self.lines[line - 1]
        return offset if text.isascii() else len(text.encode()[:offset].decode())

    def span(self, node: ast.AST) -> Span:
        """Where `node` stands, without parentheses around it."""
        line, end_line = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        return Span(
            line,
            self._column(line, node.col_offset),  # type: ignore[attr-defined]
            end_line,
            self._column(end_line, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def text(self, node: ast.AST) -> str:
        """The source of `node`."""
        span = self.span(node)
        rows = self.lines[span.line - 1 : span.end_line]
        if len(rows) == 1:
            return rows[0][span.column : span.end_column]
        return "\n".join([rows[0][span.column :], *rows[1:-1], rows[-1][: span.end_column]])

    def in_order(self, nodes: Collection[Node]) -> list[Node]:
        """`nodes` of the module in the order in which they are visited, each once."""
        wanted = set(nodes)
        return [node for node in self.nodes if node in wanted] if wanted else []

    def ancestors(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Pairs (child, parent) from `node` up to the module."""
        while node in self.parents:
            parent = self.parents[node]
            yield node, parent
            node = parent

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that holds `node`."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def is_bare(self, call: ast.AST) -> bool:
        """Whether the expression is a statement of its own, its value unused."""
        return isinstance(self.parents.get(call), ast.Expr)

    def function(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The innermost function whose body holds `node` (not its decorators or defaults), or None."""
        for child, parent in self.ancestors(node):
            if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef) and child in parent.body:
                return parent
        return None

    # Names

    def lookup(self, name: ast.Name) -> tuple[Scope, list[Binding]] | None:
        """The scope and the bindings that a loaded name refers to."""
        return self.scopes[name].lookup(name.id)

    def qualified(self, node: ast.AST) -> str:
        """The full name that a chain or name has by the module's imports; empty when it has none for sure."""
        root = node
        while type(root) is ast.Attribute:
            root = root.value
        if type(root) is not ast.Name or root.id not in self._nameable:
            return ""
        known = self._names.get(node)
        if known is None:
            known = self._names[node] = canonical(self._qualified(node, 0))
        return known

    @cached_property
    def _nameable(self) -> frozenset[str]:
        """Names that some scope binds to an import, or to a chain that may be one: no other has a full name."""
        return frozenset(
            name
            for scope in self.own_scopes.values()
            for name, bindings in scope.bindings.items()
            for binding in bindings
            if binding.kind is Kind.IMPORT or isinstance(binding.value, ast.Attribute | ast.Name)
        ) | ({"torch"} if self._may_import_torch_unseen else frozenset())

    @cached_property
    def _may_import_torch_unseen(self) -> bool:
        """Whether a star import of the project's own may bring `torch`, which then is what the name means."""
        return any(alias.name == "*" for node in self.of_type(ast.ImportFrom) for alias in node.names)

    def _qualified(self, node: ast.AST, depth: int) -> str:
        if isinstance(node, ast.Attribute):
            base = self._qualified(node.value, depth)
            return canonical(f"{base}.{node.attr}") if base else ""
        if not isinstance(node, ast.Name) or depth > 4:
            return ""
        key = self.scopes[node], node.id, depth
        known = self._names_in_scope.get(key)
        if known is None:
            known = self._names_in_scope[key] = self._bound_to(node, depth)
        return known

    def _bound_to(self, node: ast.Name, depth: int) -> str:
        found = self.lookup(node)
        if found is None:
            return "torch" if node.id == "torch" and self._may_import_torch_unseen else ""
        _, bindings = found
        imported = any(isinstance(binding.node, ast.Import) for binding in bindings)
        origins = {
            binding.origin
            if binding.kind is Kind.IMPORT
            else self._qualified(binding.value, depth + 1)
            if binding.kind is Kind.ASSIGN and isinstance(binding.value, ast.Attribute | ast.Name)
            else ""
            for binding in bindings
            if not (imported and _is_none(binding))  # what it is while the import is missing
        }
        return origins.pop() if len(origins) == 1 else ""

    def possible_origins(self, node: ast.AST) -> set[str]:
        """Every imported name that a chain may stand for, when imports under try or if leave more than one."""
        if isinstance(node, ast.Attribute):
            return {f"{base}.{node.attr}" for base in self.possible_origins(node.value)}
        if not isinstance(node, ast.Name) or (found := self.lookup(node)) is None:
            return set()
        return {canonical(binding.origin) for binding in found[1] if binding.kind is Kind.IMPORT}

    @cached_property
    def uses(self) -> list[Use]:
        """Every longest attribute chain or name that resolves to an imported name; assignments to attributes count."""
        found = []
        nameable, parents = self._nameable, self.parents
        for root in self.of_type(ast.Name):
            if root.id not in nameable or type(root.ctx) is not ast.Load or not (name := self._qualified(root, 0)):
                continue  # no part of a chain has a name unless its root has
            node: ast.expr = root
            while isinstance(parent := parents[node], ast.Attribute):
                node = parent
                name = canonical(f"{name}.{node.attr}")
            name = self._names[node] = canonical(name)
            found.append(Use(node, name))
        return found

    @cached_property
    def uses_by_name(self) -> dict[str, list[Use]]:
        """The uses of each name."""
        found: defaultdict[str, list[Use]] = defaultdict(list)
        for use in self.uses:
            found[use.name].append(use)
        return dict(found)

    def uses_of(self, names: Collection[str]) -> list[Use]:
        """The uses of any of `names`, in source order."""
        if self.uses_by_name.keys().isdisjoint(names):
            return []
        return [use for use in self.uses if use.name in names]

    def callee(self, call: ast.Call) -> str:
        """The qualified name of what is called; empty when unknown."""
        return self._callees.get(call, "")

    @cached_property
    def _callees(self) -> dict[ast.Call, str]:
        """The calls whose functions have a full name, in source order."""
        return {call: use.name for use in self.uses if (call := self.call_of(use.node)) is not None}

    def calls_of(self, *names: str) -> list[ast.Call]:
        """The calls of functions with one of these full names, in source order."""
        return [call for use in self.uses_of(names) if (call := self.call_of(use.node)) is not None]

    def call_of(self, node: ast.AST) -> ast.Call | None:
        """The call whose function is `node`."""
        parent = self.parents.get(node)
        return parent if isinstance(parent, ast.Call) and parent.func is node else None

    @cached_property
    def texts(self) -> list[ast.Constant]:
        """The literals that are strings, those in f-strings and docstrings among them."""
        return [node for node in self.of_type(ast.Constant) if type(node.value) is str]

    @cached_property
    def _keywords(self) -> dict[str | None, list[ast.keyword]]:
        found: defaultdict[str | None, list[ast.keyword]] = defaultdict(list)
        for keyword in self.of_type(ast.keyword):
            found[keyword.arg].append(keyword)
        return dict(found)

    def passed_as(self, name: str) -> list[tuple[ast.Call, ast.keyword]]:
        """The arguments of that name, each with the call that it is passed in."""
        found = ((self.parents[keyword], keyword) for keyword in self._keywords.get(name, []))
        return [(call, keyword) for call, keyword in found if isinstance(call, ast.Call)]

    @cached_property
    def attributes_by_name(self) -> dict[str, list[ast.Attribute]]:
        """Every read, write or deletion of an attribute, by the attribute's name."""
        found: defaultdict[str, list[ast.Attribute]] = defaultdict(list)
        for node in self.of_type(ast.Attribute):
            found[node.attr].append(node)
        return dict(found)

    @cached_property
    def calls_by_method(self) -> dict[str, list[ast.Call]]:
        """Calls of an attribute, by the attribute's name, whatever the receiver."""
        found: dict[str, list[ast.Call]] = {}
        for call in self.of_type(ast.Call):
            if isinstance(call.func, ast.Attribute):
                found.setdefault(call.func.attr, []).append(call)
        return found

    @cached_property
    def calls_by_function(self) -> dict[str, list[ast.Call]]:
        """Calls of a plain name, by the name, whatever it is bound to."""
        found: dict[str, list[ast.Call]] = {}
        for call in self.of_type(ast.Call):
            if isinstance(call.func, ast.Name):
                found.setdefault(call.func.id, []).append(call)
        return found

    def calls_named(self, name: str) -> list[ast.Call]:
        """Calls of a function or a method of that name."""
        return [*self.calls_by_function.get(name, []), *self.calls_by_method.get(name, [])]

    @cached_property
    def bound_names(self) -> set[str]:
        """Every name bound anywhere in the module, in any scope."""
        return {name for scope in self.own_scopes.values() for name in scope.bindings}

    def only_value(self, name: ast.Name) -> ast.expr | None:
        """The expression of the one assignment that a name can come from; None if there are others."""
        found = self.lookup(name)
        if found is None or len(found[1]) != 1 or found[1][0].kind is not Kind.ASSIGN:
            return None
        return found[1][0].value


def _is_none(binding: Binding) -> bool:
    return isinstance(binding.value, ast.Constant) and binding.value.value is None
