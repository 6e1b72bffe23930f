"""Variables that several edits need: the user's own where there is one, else a new one hoisted to serve all."""

import ast
import re
from dataclasses import dataclass, field

from tpuport.analysis.devices import default_device_kind, zero_is_current
from tpuport.analysis.module import Module
from tpuport.analysis.scopes import Kind, Scope
from tpuport.errors import TpuportError
from tpuport.model import Edit, Project, Span

PLACEHOLDER = re.compile(r"\{((?:new )?device\.type|(?:new )?device|autocast_dtype)\}")
DEVICE = 'torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")'
DEVICE_TYPE = 'torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"'
AUTOCAST_DTYPE = "torch.float16 if torch.cuda.is_available() else torch.bfloat16"
NAMES = {
    "device": ("device", "default_device", "accelerator_device", "tpuport_device"),
    "autocast_dtype": ("autocast_dtype", "amp_dtype", "tpuport_autocast_dtype"),
}
VALUES = {"device": DEVICE, "autocast_dtype": AUTOCAST_DTYPE}


@dataclass(frozen=True, slots=True)
class Insertion:
    """A statement `name = value` to put before or after the statement at `anchor`."""

    anchor: Span
    after: bool
    name: str
    value: str


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


Function = ast.FunctionDef | ast.AsyncFunctionDef


class _Planner:
    def __init__(self, module: Module, project: Project, edits: list[Edit]) -> None:
        self.module = module
        self.project = project
        self.sites = [(edit.span, found[1]) for edit in edits for found in PLACEHOLDER.finditer(_template(edit))]
        self._functions = [node for node in module.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        self._zero = zero_is_current(module, project)
        self.result = Hoisted()

    def plan(self) -> Hoisted:
        """Serve the sites of each variable."""
        for variable in ("device", "autocast_dtype"):
            self._serve(variable, [site for site in self.sites if site[1].split(".")[0] == variable])
        for span, placeholder in self.sites:
            if placeholder.startswith("new "):
                self.result.texts[span, placeholder] = self._new(span, placeholder)
        return self.result

    def _new(self, span: Span, placeholder: str) -> str:
        """The value of a variable of the user's: that of the hoisted one, where it stands before, else spelled out."""
        for insertion in self.result.insertions:
            in_module = not any(self.module.span(s).contains(insertion.anchor) for f in self._functions for s in f.body)
            before = insertion.anchor < span and (
                in_module or self._enclosing(span) == self._enclosing(insertion.anchor)
            )
            if insertion.value == DEVICE and before:
                return insertion.name + placeholder.removeprefix("new device")
        return DEVICE_TYPE if placeholder.endswith(".type") else DEVICE

    # The user's own variable

    def _scope(self, span: Span) -> Scope:
        functions = self._enclosing(span)
        return self.module.own_scopes[functions[-1]] if functions else self.module.scope

    def _enclosing(self, span: Span) -> list[Function]:
        """The functions whose body runs the code at `span`, outermost first."""
        return [f for f in self._functions if any(self.module.span(s).contains(span) for s in f.body)]

    def _own(self, span: Span) -> tuple[str, str] | None:
        """A variable of the user's that already holds the default device here, and whether it is text or a device."""
        scope: Scope | None = self._scope(span)
        while scope is not None:
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
        inside = scope.is_module and bool(self._enclosing(span))
        return inside or self.module.span(node)[2:] <= span[:2]

    def _sees(self, span: Span, name: str, scope: Scope) -> bool:
        found = self._scope(span).lookup(name)
        return found is not None and found[0] is scope

    # A new variable

    def _serve(self, variable: str, sites: list[tuple[Span, str]]) -> None:
        unserved: list[tuple[Span, str]] = []
        for span, placeholder in sites:
            own = self._own(span) if variable == "device" else None
            if own is None:
                unserved.append((span, placeholder))
            else:
                name, kind = own
                suffix = ".type" if placeholder == "device.type" and kind == "device" else ""
                self.result.texts[span, placeholder] = name + suffix
        groups: dict[Function | None, list[tuple[Span, str]]] = {}
        for span, placeholder in unserved:
            functions = self._enclosing(span)
            groups.setdefault(functions[0] if functions else None, []).append((span, placeholder))
        if len(groups) > 1 and not self.project.sets_visible_devices:
            groups = {None: unserved}
        for function, members in groups.items():
            self._hoist(variable, function, members)

    def _hoist(self, variable: str, function: Function | None, members: list[tuple[Span, str]]) -> None:
        name = self._free_name(variable, function, [span for span, _ in members])
        for span, placeholder in members:
            self.result.texts[span, placeholder] = name + placeholder[len(variable) :]
        anchor, after = self._anchor(function, [span for span, _ in members])
        self.result.insertions.append(Insertion(anchor, after, name, VALUES[variable]))

    def _free_name(self, variable: str, function: Function | None, spans: list[Span]) -> str:
        for name in NAMES[variable]:
            taken = any(self._scope(span).lookup(name) for span in spans)
            if function is None:
                taken = taken or name in self.module.scope.bindings
            elif not taken:
                inside = [
                    s for node, s in self.module.own_scopes.items() if node is function or self._within(node, function)
                ]
                taken = any(name in scope.bindings or name in scope.elsewhere for scope in inside)
            if not taken:
                return name
        raise TpuportError(f"no free name for a variable like {NAMES[variable][0]!r}")

    def _within(self, node: ast.AST, function: ast.AST) -> bool:
        return any(parent is function for _, parent in self.module.ancestors(node))

    def _anchor(self, function: Function | None, spans: list[Span]) -> tuple[Span, bool]:
        """The statement to stand beside, and whether to stand after it."""
        span = self.module.span
        if function is not None:
            return next(_whole(self.module, s) for s in function.body if any(span(s).contains(x) for x in spans)), False
        body = self.module.tree.body
        direct = [x for x in spans if not self._enclosing(x)]
        first = next(
            (i for i, s in enumerate(body) if any(_whole(self.module, s).contains(x) for x in direct)), len(body)
        )
        stop = next(
            (i for i, s in enumerate(body) if isinstance(s, Function | ast.ClassDef | ast.For | ast.While | ast.With)),
            len(body),
        )
        imports = [i for i, s in enumerate(body[: min(first, stop)]) if _imports(s)]
        if self.project.sets_visible_devices and first < len(body):
            return _whole(self.module, body[first]), False
        if imports:
            return _whole(self.module, body[imports[-1]]), True
        return _whole(self.module, body[min(first, stop, len(body) - 1)]), False


def _imports(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return True
    if isinstance(statement, ast.Try):
        return any(_imports(s) for s in statement.body)
    return isinstance(statement, ast.If) and any(_imports(s) for s in statement.body)


def _whole(module: Module, statement: ast.stmt) -> Span:
    """The statement's span with its decorators."""
    span = module.span(statement)
    decorators = getattr(statement, "decorator_list", [])
    if decorators:
        first = module.span(decorators[0])
        span = Span(first.line, first.column, span.end_line, span.end_column)
    return span


def plan(module: Module, project: Project, edits: list[Edit]) -> Hoisted:
    """What each placeholder in `edits` becomes, and which statements to insert for it."""
    return _Planner(module, project, edits).plan()
