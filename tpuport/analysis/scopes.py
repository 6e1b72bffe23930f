"""Scopes and bindings of one module: which statement binds a name, as Python's own scoping rules say."""

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any


class Kind(Enum):
    """How a name came to be bound."""

    IMPORT = auto()
    ASSIGN = auto()
    PARAMETER = auto()
    DEFINITION = auto()
    OTHER = auto()
    """Loop and `with` targets, exception names, augmented assignment, `del`, unpacking: a value not written out."""


@dataclass(slots=True)
class Binding:
    """One statement that binds a name.

    `value` is the bound expression of a plain assignment, or a parameter's default. `origin` is the qualified name
    of an import (`torch.cuda.amp.autocast`).
    """

    kind: Kind
    node: ast.AST
    value: ast.expr | None = None
    origin: str = ""


@dataclass(slots=True, eq=False)
class Scope:
    """A module, class, function, lambda or comprehension, with the names that it binds."""

    node: ast.AST
    parent: "Scope | None"
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    elsewhere: dict[str, "Scope"] = field(default_factory=dict)
    """Names declared `global` or `nonlocal`, with the scope that they live in."""

    @property
    def is_module(self) -> bool:
        """Whether this is the module's own scope."""
        return self.parent is None

    @property
    def is_function(self) -> bool:
        """Whether this is the scope of a function or lambda."""
        return isinstance(self.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)

    def bind(self, name: str, binding: Binding) -> None:
        """Record `binding` in the scope that `name` lives in."""
        owner = self.elsewhere.get(name, self)
        owner.bindings.setdefault(name, []).append(binding)

    def lookup(self, name: str) -> "tuple[Scope, list[Binding]] | None":
        """The scope that binds `name` as seen from here, and all its bindings there; None for builtins and unknowns."""
        scope: Scope | None = self
        first = True
        while scope is not None:
            if name in scope.elsewhere:
                scope = scope.elsewhere[name]
                return (scope, scope.bindings[name]) if name in scope.bindings else None
            if (first or not isinstance(scope.node, ast.ClassDef)) and name in scope.bindings:
                return scope, scope.bindings[name]
            scope, first = scope.parent, False
        return None


_NO_CHILDREN = {"ctx", "op", "ops", "id", "attr", "type_comment", "kind", "conversion"}
"""Fields that hold plain data, or operators and contexts, which are one object wherever they stand."""


_CHILDREN: dict[type[ast.AST], tuple[str, ...]] = {ast.Constant: ()}
"""The fields of each class of node that may hold others, worked out once."""


def _child_fields(kind: type[ast.AST]) -> tuple[str, ...]:
    if kind not in _CHILDREN:
        _CHILDREN[kind] = tuple(name for name in kind._fields if name not in _NO_CHILDREN)
    return _CHILDREN[kind]


class ScopeBuilder:
    """Fills `scopes` (the scope that each name is evaluated in), `parents` and `order` in one walk."""

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope(tree, None)
        self.scopes: dict[ast.Name, Scope] = {}
        self.parents: dict[ast.AST, ast.AST] = {}
        self.order: list[ast.AST] = []
        self.own: dict[ast.AST, Scope] = {tree: self.module}
        self._scope = self.module
        self._has_cells = _imports_marimo(tree)
        self.visit(tree)

    def visit(self, node: ast.AST) -> None:
        """Take note of `node`, bind what it binds, then go on to its children."""
        self.order.append(node)
        if type(node) is ast.Name:
            self.scopes[node] = self._scope
            return
        visitor = _VISITORS.get(type(node))
        if visitor is None:
            self.generic_visit(node)
        else:
            visitor(self, node)

    def generic_visit(self, node: ast.AST) -> None:
        """Visit every child and remember its parent."""
        # As `visit` would, without its call: names and constants are more than half of all nodes.
        parents, scopes, add, scope = self.parents, self.scopes, self.order.append, self._scope
        kind = type(node)
        for name in _CHILDREN.get(kind) or _child_fields(kind):
            child: Any = getattr(node, name, None)
            for item in child if type(child) is list else (child,):
                kind = type(item)
                if kind is ast.Name:
                    parents[item] = node
                    scopes[item] = scope
                    add(item)
                elif kind is ast.Constant:
                    parents[item] = node
                    add(item)
                elif kind in _VISITORS:
                    parents[item] = node
                    add(item)
                    _VISITORS[kind](self, item)
                elif isinstance(item, ast.AST):
                    parents[item] = node
                    add(item)
                    self.generic_visit(item)

    def _child(self, child: ast.AST, parent: ast.AST) -> None:
        self.parents[child] = parent
        self.visit(child)

    def _children(self, children: "list[ast.expr] | list[ast.stmt]", parent: ast.AST) -> None:
        for child in children:
            self._child(child, parent)

    def _inside(self, node: ast.AST, children: "list[ast.expr] | list[ast.stmt]") -> None:
        outer, self._scope = self._scope, self.own.setdefault(node, Scope(node, self._scope))
        self._children(children, node)
        self._scope = outer

    # Functions and classes

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._scope.bind(node.name, Binding(Kind.DEFINITION, node))
        self._children(node.decorator_list, node)
        if self._has_cells and is_marimo_cell(node):
            self._cell(node)
            return
        self._parameters(node, node.args)
        if node.returns is not None:
            self._child(node.returns, node)
        self._inside(node, node.body)

    def _cell(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """A cell of marimo: its names are those of all cells, and its parameters say which of others' it uses."""
        self._child(node.args, node)
        self._children(node.body, node)

    def _parameters(self, node: ast.AST, arguments: ast.arguments) -> None:
        self.parents[arguments] = node
        scope = self.own.setdefault(node, Scope(node, self._scope))
        positional = [*arguments.posonlyargs, *arguments.args]
        defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
        pairs = [*zip(positional, [*defaults, *arguments.defaults], strict=True)]
        pairs += [*zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
        for argument, default in pairs:
            scope.bind(argument.arg, Binding(Kind.PARAMETER, argument, default))
            self._child(argument, arguments)
            if default is not None:
                self._child(default, arguments)
        for star in (arguments.vararg, arguments.kwarg):
            if star is not None:
                scope.bind(star.arg, Binding(Kind.PARAMETER, star))
                self._child(star, arguments)

    visit_FunctionDef = _function
    visit_AsyncFunctionDef = _function

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """A lambda's defaults belong outside it, its body inside."""
        self._parameters(node, node.args)
        self._inside(node, [node.body])

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """A class body is a scope of its own, invisible from its methods."""
        self._scope.bind(node.name, Binding(Kind.DEFINITION, node))
        self._children(node.decorator_list, node)
        self._children(node.bases, node)
        for keyword in node.keywords:
            self._child(keyword, node)
        self._inside(node, node.body)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        self._child(node.generators[0].iter, node)
        outer, self._scope = self._scope, self.own.setdefault(node, Scope(node, self._scope))
        for index, generator in enumerate(node.generators):
            self.parents[generator] = node
            self._target(generator.target, None, generator)
            self._child(generator.target, generator)
            if index:
                self._child(generator.iter, generator)
            self._children(generator.ifs, generator)
        self._children([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt], node)
        self._scope = outer

    visit_ListComp = _comprehension
    visit_SetComp = _comprehension
    visit_GeneratorExp = _comprehension
    visit_DictComp = _comprehension

    # Bindings

    def _target(self, target: ast.expr, value: ast.expr | None, node: ast.AST) -> None:
        if isinstance(target, ast.Name):
            kind = Kind.OTHER if value is None else Kind.ASSIGN
            self._scope.bind(target.id, Binding(kind, node, value))
        elif isinstance(target, ast.Starred):
            self._target(target.value, None, node)
        elif isinstance(target, ast.Tuple | ast.List):
            values: list[ast.expr | None] = [None] * len(target.elts)
            if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
                values = [*value.elts]
            for element, part in zip(target.elts, values, strict=True):
                self._target(element, part, node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Bind every target."""
        for target in node.targets:
            self._target(target, node.value, node)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Bind the target when there is a value."""
        if node.value is not None:
            self._target(node.target, node.value, node)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Bind the target to a value not written out."""
        self._target(node.target, None, node)
        self.generic_visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        """A walrus binds in the scope around comprehensions."""
        scope = self._scope
        while isinstance(scope.node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) and scope.parent:
            scope = scope.parent
        scope.bind(node.target.id, Binding(Kind.ASSIGN, node, node.value))
        self.generic_visit(node)

    def _loop(self, node: ast.For | ast.AsyncFor) -> None:
        self._target(node.target, None, node)
        self.generic_visit(node)

    visit_For = _loop
    visit_AsyncFor = _loop

    def visit_withitem(self, node: ast.withitem) -> None:
        """Bind what follows `as`."""
        if node.optional_vars is not None:
            self._target(node.optional_vars, None, node)
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        """Bind the exception's name."""
        if node.name:
            self._scope.bind(node.name, Binding(Kind.OTHER, node))
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        """Bind a capture pattern."""
        if node.name:
            self._scope.bind(node.name, Binding(Kind.OTHER, node))
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        """Bind a star pattern."""
        if node.name:
            self._scope.bind(node.name, Binding(Kind.OTHER, node))

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        """Bind a mapping pattern's rest."""
        if node.rest:
            self._scope.bind(node.rest, Binding(Kind.OTHER, node))
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        """A deleted name no longer has one known value."""
        for target in node.targets:
            if isinstance(target, ast.Name):
                self._scope.bind(target.id, Binding(Kind.OTHER, node))
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        """`import a.b` binds a; `import a.b as c` binds c to a.b."""
        for alias in node.names:
            origin = alias.name if alias.asname else alias.name.partition(".")[0]
            self._scope.bind(alias.asname or origin, Binding(Kind.IMPORT, node, origin=origin))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """A relative import keeps its dots, so that it never looks like a package of that name."""
        base = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name != "*":
                origin = f"{base}.{alias.name}" if base else alias.name
                self._scope.bind(alias.asname or alias.name, Binding(Kind.IMPORT, node, origin=origin))

    def visit_Global(self, node: ast.Global) -> None:
        """The names live in the module."""
        for name in node.names:
            self._scope.elsewhere[name] = self.module

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        """The names live in the nearest enclosing function that binds them."""
        for name in node.names:
            scope = self._scope.parent
            while scope is not None and (not scope.is_function or name not in scope.bindings):
                scope = scope.parent
            if scope is not None:
                self._scope.elsewhere[name] = scope


def _imports_marimo(tree: ast.Module) -> bool:
    return any(isinstance(s, ast.Import) and any(alias.name == "marimo" for alias in s.names) for s in tree.body)


def is_marimo_cell(node: ast.AST) -> bool:
    """Whether a function is a cell of a marimo notebook, by its decorator: `@app.cell`, with arguments or without."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    marks = [mark.func if isinstance(mark, ast.Call) else mark for mark in node.decorator_list]
    return any(
        isinstance(mark, ast.Attribute)
        and mark.attr == "cell"
        and isinstance(mark.value, ast.Name)
        and mark.value.id == "app"
        for mark in marks
    )


_VISITORS: dict[type[ast.AST], Callable[[ScopeBuilder, Any], None]] = {
    getattr(ast, name.removeprefix("visit_")): method
    for name, method in vars(ScopeBuilder).items()
    if name.startswith("visit_")
}
"""The method for each class of node that binds something, or that evaluates a part of itself elsewhere."""
