"""Variables that several edits need: the user's own where there is one, else a new one hoisted to serve all."""

import ast
from dataclasses import dataclass, field
from functools import cached_property

from tpuport.analysis.devices import default_device_kind, zero_is_current
from tpuport.analysis.module import Module, dotted
from tpuport.analysis.scopes import Kind, Scope, is_marimo_cell
from tpuport.errors import TpuportError
from tpuport.model import Edit, Project, Span
from tpuport.rewrite.anchors import Anchors, Function
from tpuport.rewrite.variables import (
    CURRENT,
    DEVICE,
    DEVICE_TYPE,
    EARLY_DEVICE,
    EARLY_TYPE,
    PLACEHOLDER,
    VARIABLES,
)


@dataclass(frozen=True, slots=True)
class Insertion:
    """A statement `name = value`, or a definition of it, to put before or after the statement at `anchor`."""

    anchor: Span
    after: bool
    name: str
    value: str
    definition: str = ""


@dataclass(slots=True)
class Hoisted:
    """For each edit's placeholder the text that stands for it, and the statements to insert."""

    texts: dict[tuple[Span, str], str] = field(default_factory=dict)
    insertions: list[Insertion] = field(default_factory=list)

    def fill(self, span: Span, template: str) -> str:
        """`template` with its hoisted variables put in, for the edit at `span`."""
        return PLACEHOLDER.sub(lambda found: self.texts[span, found[1]], template)


def _template(edit: Edit) -> str:
    return getattr(edit, "template", "")


class _Planner:
    def __init__(self, module: Module, project: Project, edits: list[Edit]) -> None:
        self.module = module
        self.project = project
        self.sites = [(edit.span, found[1]) for edit in edits for found in PLACEHOLDER.finditer(_template(edit))]
        self.anchors = Anchors(module, project)
        self._zero = zero_is_current(module, project)
        self._early_names: set[str] = set()
        self.result = Hoisted()

    def plan(self) -> Hoisted:
        """Serve the sites of each variable."""
        early = [site for site in self.sites if site[1].split(".")[0] == "device" and self._is_early(*site)]
        self._serve("device", early, early=True)
        self._early_names = {insertion.name for insertion in self.result.insertions}
        for variable in VARIABLES:
            sites = [site for site in self.sites if site[1].split(".")[0] == variable and site not in early]
            self._serve(variable, sites)
        for span, placeholder in self.sites:
            if placeholder.startswith("new "):
                self.result.texts[span, placeholder] = self._new(span, placeholder)
        return self.result

    def _new(self, span: Span, placeholder: str) -> str:
        """The value of a variable of the user's: that of the hoisted one, where it stands before, else spelled out."""
        early = self._is_early(span, placeholder)
        for insertion in self.result.insertions:
            around = self.anchors.enclosing(insertion.anchor)
            before = insertion.anchor < span and around in ([], self.anchors.enclosing(span))
            before = before and self.anchors.reaches(insertion.anchor, span)
            free = self._scope(span).lookup(insertion.name) is None
            if insertion.value in (DEVICE, EARLY_DEVICE if early else DEVICE) and before and free:
                return insertion.name + placeholder.removeprefix("new device")
        if early:
            return EARLY_TYPE if placeholder.endswith(".type") else EARLY_DEVICE
        return DEVICE_TYPE if placeholder.endswith(".type") else DEVICE

    @cached_property
    def _devices(self) -> set[Span]:
        """Where a device is made of a name that is written out."""
        return {self.module.span(call) for call in self._made() if all(isinstance(a, ast.Constant) for a in call.args)}

    def _made(self) -> list[ast.Call]:
        calls: list[ast.Call] = self.module.of_type(ast.Call)
        return [call for call in calls if self.module.callee(call) == "torch.device"]

    @cached_property
    def _written_out(self) -> set[Span]:
        """Where CUDA or NCCL is named, or a device is made of the name alone: neither looks at any device."""
        texts = list(filter(_names_cuda, self.module.of_type(ast.Constant)))
        made = (call for call in self._made() if len(call.args) == 1 and not call.keywords and call.args[0] in texts)
        return {*map(self.module.span, texts), *map(self.module.span, made)}

    def _is_early(self, span: Span, placeholder: str) -> bool:
        """Whether a device is only named here, in a project in which asking for one may come too early."""
        if not self.project.facts.defers_cuda or span not in self._written_out:
            return False
        return placeholder.startswith("new ") or not self.anchors.enclosing(span) or self._is_option(span)

    def _is_option(self, span: Span) -> bool:
        """Whether it is said while a command line is defined."""
        return any(
            self.module.span(call).contains(span) for call in self.module.calls_by_method.get("add_argument", [])
        )

    # The user's own variable

    @cached_property
    def _regions(self) -> list[tuple[Span, Scope]]:
        """The stretches of source that run inside each scope but the module's, in the order of their beginnings."""
        regions = [
            (self.module.span(part), scope) for node, scope in self.module.own_scopes.items() for part in _inside(node)
        ]
        return sorted(regions, key=lambda region: (region[0][:2], tuple(-end for end in region[0][2:])))

    def _scope(self, span: Span) -> Scope:
        """The innermost scope that the code at `span` is evaluated in."""
        found = [scope for region, scope in self._regions if region.contains(span)]
        return found[-1] if found else self.module.scope

    @cached_property
    def _is_set_unseen(self) -> bool:
        """Whether the file changes variables of the module in ways that no reader of its names can follow."""
        called = {dotted(call.func) for call in self.module.of_type(ast.Call)}
        return bool(called & {"exec", "eval", "globals", "vars", "setattr"})

    def _own(self, span: Span) -> tuple[str, str] | None:
        """A variable of the user's that already holds the default device here, and whether it is text or a device."""
        scope: Scope | None = self._scope(span)
        while scope is not None and not (scope.is_module and self._is_set_unseen):
            for name, bindings in scope.bindings.items():
                if len(bindings) != 1 or bindings[0].kind is not Kind.ASSIGN:
                    continue
                node = bindings[0].node
                kind = default_device_kind(self.module, bindings[0].value, self._zero)
                if kind and self._serves(node, scope, span) and self._sees(span, name, scope):
                    return name, kind
            scope = scope.parent
        return None

    def _serves(self, node: ast.AST, scope: Scope, span: Span) -> bool:
        """Whether the assignment always runs before the code at `span`."""
        body = getattr(scope.node, "body", [])
        if not isinstance(body, list) or node not in body:
            return False
        inside = scope.is_module and bool(self.anchors.enclosing(span))
        return inside or self.module.span(node)[2:] <= span[:2]

    def _sees(self, span: Span, name: str, scope: Scope) -> bool:
        found = self._scope(span).lookup(name)
        return found is not None and found[0] is scope

    def _as_own(self, name: str, kind: str, span: Span, placeholder: str) -> str:
        """What stands for a variable of the user's at a site: text where text was, a device where one was made."""
        if kind == "device":
            return f"{name}.type" if placeholder == "device.type" else name
        return f"torch.device({name})" if placeholder == "device" and span in self._devices else name

    # A new variable

    def _serve(self, variable: str, sites: list[tuple[Span, str]], *, early: bool = False) -> None:
        unserved: list[tuple[Span, str]] = []
        for span, placeholder in sites:
            own = self._own(span) if variable == "device" else None
            if own is None:
                unserved.append((span, placeholder))
            else:
                self.result.texts[span, placeholder] = self._as_own(*own, span, placeholder)
        groups: dict[Function | None, list[tuple[Span, str]]] = {}
        for span, placeholder in unserved:
            functions = self.anchors.enclosing(span)
            groups.setdefault(functions[0] if functions else None, []).append((span, placeholder))
        asks = self.project.facts.defers_cuda and not early
        at_import = len(groups) > 1 and not asks and self._torch_is_there()
        in_cells = any(function is not None and is_marimo_cell(function) for function in groups)
        if groups and not in_cells and (at_import or VARIABLES[variable].definition):
            groups = {None: unserved}
        for function, members in groups.items():
            self._hoist(variable, function, members, early)

    def _torch_is_there(self) -> bool:
        """Whether torch can be used while the module is imported: it is, or could be, imported without conditions."""
        bindings = [b for bindings in self.module.scope.bindings.values() for b in bindings]
        torch = [b for b in bindings if b.kind is Kind.IMPORT and b.origin.partition(".")[0] == "torch"]
        elsewhere = any(
            isinstance(node, ast.Import) and any(alias.name == "torch" for alias in node.names)
            for node in self.module.of_type(ast.Import)
        )
        if not torch:
            return not elsewhere
        return any(binding.node in self.module.tree.body for binding in torch)

    def _hoist(self, variable: str, function: Function | None, members: list[tuple[Span, str]], early: bool) -> None:
        spans = [span for span, _ in members]
        name = self._free_name(VARIABLES[variable].names[early:], function, spans)
        for span, placeholder in members:
            self.result.texts[span, placeholder] = name + placeholder[len(variable) :]
        value, definition = EARLY_DEVICE if early else VARIABLES[variable].value, VARIABLES[variable].definition
        for anchor, after in self.anchors.beside(function, spans, asks=not early and not definition):
            there = value == DEVICE and self.anchors.has_accelerator(anchor)
            self.result.insertions.append(Insertion(anchor, after, name, CURRENT if there else value, definition))

    def _free_name(self, names: tuple[str, ...], function: Function | None, spans: list[Span]) -> str:
        own = "_" if function is not None and is_marimo_cell(function) else ""  # of one cell alone, so marimo says
        for name in (own + name for name in names):
            taken = name in self._early_names or name in self._unbound
            taken = taken or any(self._scope(span).lookup(name) for span in spans)
            if function is None:
                taken = taken or name in self.module.scope.bindings
            elif not taken:
                inside = [
                    s for node, s in self.module.own_scopes.items() if node is function or self._within(node, function)
                ]
                taken = any(name in scope.bindings or name in scope.elsewhere for scope in inside)
            if not taken:
                return name
        raise TpuportError(f"no free name for a variable like {names[0]!r}")

    @cached_property
    def _unbound(self) -> set[str]:
        """Names that the module reads and nothing in it binds: a star import may."""
        return unbound(self.module)

    def _within(self, node: ast.AST, function: ast.AST) -> bool:
        return any(parent is function for _, parent in self.module.ancestors(node))


def _inside(node: ast.AST) -> list[ast.expr] | list[ast.stmt]:
    """The parts of a scope's node that are evaluated inside it."""
    match node:
        case ast.FunctionDef(body=body) | ast.AsyncFunctionDef(body=body) | ast.ClassDef(body=body):
            return body
        case ast.Lambda(body=value):
            return [value]
        case ast.DictComp(key=key, value=value, generators=generators):
            return [key, value, *_conditions(generators)]
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            return [node.elt, *_conditions(node.generators)]
    return []


def _conditions(generators: list[ast.comprehension]) -> list[ast.expr]:
    """What a comprehension evaluates inside itself beside its result: all but the first iterable."""
    later = [generator.iter for generator in generators[1:]]
    return [*later, *(test for generator in generators for test in generator.ifs)]


def _names_cuda(text: ast.Constant) -> bool:
    return isinstance(text.value, str) and text.value.lower().startswith(("cuda", "nccl"))


def unbound(module: Module) -> set[str]:
    """Names that a module reads and does not bind, builtins among them."""
    return {n.id for n in module.of_type(ast.Name) if isinstance(n.ctx, ast.Load) and module.lookup(n) is None}


def plan(module: Module, project: Project, edits: list[Edit]) -> Hoisted:
    """What each placeholder in `edits` becomes, and which statements to insert for it."""
    return _Planner(module, project, edits).plan()
