"""Variables that several edits need: the user's own where there is one, else a new one hoisted to serve all."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from tpuport.analysis.devices import default_device_kind, zero_is_current
from tpuport.analysis.guards import CUDA_AVAILABLE, atoms, blocks
from tpuport.analysis.module import Module, dotted
from tpuport.analysis.scopes import Kind, Scope, is_marimo_cell
from tpuport.errors import TpuportError
from tpuport.model import Edit, Project, Span
from tpuport.source.ipython import CELL
from tpuport.source.project import sets_visible_devices

PLACEHOLDER = re.compile(
    r"\{((?:new )?device\.type|(?:new )?device|autocast_dtype|half_dtype|accelerator_type"
    r"|device_loader|rate_tracker|serial_executor|trainer_strategy|fabric_strategy)\}"
)
DEVICE = 'torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")'
DEVICE_TYPE = 'torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"'
CURRENT = "torch.accelerator.current_accelerator()"
EARLY_DEVICE = 'torch.accelerator.current_accelerator() or torch.device("cpu")'
"""What a device that is only written out becomes where CUDA_VISIBLE_DEVICES may yet be set, or a process forked.

`current_accelerator` alone looks at no device, as the name alone did; `is_available` makes CUDA read the variable.
"""
EARLY_TYPE = f"({EARLY_DEVICE}).type"


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable to hoist: its value, and the names it may take, the first free one first.

    What is no value is a `definition` of `NAME`, which stands at module level.
    """

    value: str
    names: tuple[str, ...]
    definition: str = ""


DEVICE_LOADER = """\
class NAME:
    # The batches of a loader, with their tensors on a device.
    def __init__(self, loader, device):
        self.loader = loader
        self.device = device

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        return map(self.moved, self.loader)

    def moved(self, batch):
        if hasattr(batch, "to"):
            return batch.to(self.device)
        if isinstance(batch, dict):
            return {key: self.moved(value) for key, value in batch.items()}
        if isinstance(batch, tuple) and hasattr(batch, "_fields"):
            return type(batch)(*map(self.moved, batch))
        if isinstance(batch, (list, tuple)):
            return type(batch)(map(self.moved, batch))
        return batch
"""

RATE_TRACKER = """\
class NAME:
    # Counts a second: smoothed since the last look, and over all.
    from time import time as now

    def __init__(self, smooth_factor=0.4):
        self.smooth_factor = smooth_factor
        self.start = self.looked = self.now()
        self.before = self.count = 0.0
        self.last = None

    def add(self, count):
        self.count += count

    def rate(self):
        now = self.now()
        if now <= self.looked:
            return 0.0
        rate = self.count / (now - self.looked)
        if self.last is not None:
            rate = (1 - self.smooth_factor) * rate + self.smooth_factor * self.last
        self.before, self.count, self.looked, self.last = self.before + self.count, 0.0, now, rate
        return rate

    def global_rate(self):
        seconds = self.now() - self.start
        return (self.before + self.count) / seconds if seconds > 0 else 0.0
"""

SERIAL_EXECUTOR = """\
class NAME:
    # Runs a function in one process after the other.
    def run(self, function):
        if not torch.distributed.is_initialized():
            return function()
        result = None
        for rank in range(torch.distributed.get_world_size()):
            if rank == torch.distributed.get_rank():
                result = function()
            torch.distributed.barrier()
        return result
"""

STRATEGY = """\
def NAME():
    # Lightning's own choice; for an accelerator that Lightning has no name for, a strategy of its own.
    if torch.cuda.is_available() or not torch.accelerator.is_available():
        return "auto"
    device = torch.accelerator.current_accelerator()
    if device.type == "mps":
        return "auto"
    from PACKAGE.accelerators import CPUAccelerator
    from PACKAGE.strategies import SingleDeviceStrategy

    class CurrentAccelerator(CPUAccelerator):
        def setup_device(self, device):
            pass

    # Weights that are tied, or in an optimizer already, have to stay the same objects when they move.
    torch.__future__.set_swap_module_params_on_conversion(True)
    return SingleDeviceStrategy(device, accelerator=CurrentAccelerator())
"""

VARIABLES = {
    "device": Variable(DEVICE, ("device", "default_device", "accelerator_device", "tpuport_device")),
    "autocast_dtype": Variable(
        "None if torch.cuda.is_available() else torch.bfloat16",  # None: whatever CUDA's default is at that point
        ("autocast_dtype", "amp_dtype", "tpuport_autocast_dtype"),
    ),
    "half_dtype": Variable(
        "torch.float16 if torch.cuda.is_available() else torch.bfloat16",
        ("half_dtype", "accelerator_half_dtype", "tpuport_half_dtype"),
    ),
    "accelerator_type": Variable(
        'torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cuda"',
        ("accelerator_type", "current_accelerator_type", "tpuport_accelerator_type"),
    ),
    "device_loader": Variable("", ("DeviceLoader", "AcceleratorLoader", "TpuportDeviceLoader"), DEVICE_LOADER),
    "rate_tracker": Variable("", ("RateTracker", "CountRate", "TpuportRateTracker"), RATE_TRACKER),
    "serial_executor": Variable("", ("SerialExecutor", "OneAfterAnother", "TpuportSerialExecutor"), SERIAL_EXECUTOR),
    "trainer_strategy": Variable(
        "",
        ("trainer_strategy", "accelerator_strategy", "tpuport_trainer_strategy"),
        STRATEGY.replace("PACKAGE", "lightning.pytorch"),
    ),
    "fabric_strategy": Variable(
        "",
        ("fabric_strategy", "accelerator_fabric_strategy", "tpuport_fabric_strategy"),
        STRATEGY.replace("PACKAGE", "lightning.fabric"),
    ),
}


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


Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
Branching = ast.If | ast.Try | ast.With | ast.AsyncWith


class _Planner:
    def __init__(self, module: Module, project: Project, edits: list[Edit]) -> None:
        self.module = module
        self.project = project
        self.sites = [(edit.span, found[1]) for edit in edits for found in PLACEHOLDER.finditer(_template(edit))]
        self._functions = [node for node in module.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
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
            in_module = not any(self.module.span(s).contains(insertion.anchor) for f in self._functions for s in f.body)
            before = insertion.anchor < span and (
                in_module or self._enclosing(span) == self._enclosing(insertion.anchor)
            )
            before = before and self._reaches(insertion.anchor, span)
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
        return placeholder.startswith("new ") or not self._enclosing(span) or self._is_option(span)

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

    def _enclosing(self, span: Span) -> list[Function]:
        """The functions whose body runs the code at `span`, outermost first."""
        return [f for f in self._functions if any(self.module.span(s).contains(span) for s in f.body)]

    @cached_property
    def _is_set_unseen(self) -> bool:
        """Whether the file changes variables in ways that no reader of its names can follow."""
        called = {dotted(call.func) for call in self.module.of_type(ast.Call)}
        return bool(called & {"exec", "eval", "globals", "vars", "setattr"})

    def _own(self, span: Span) -> tuple[str, str] | None:
        """A variable of the user's that already holds the default device here, and whether it is text or a device."""
        if self._is_set_unseen:
            return None
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
            functions = self._enclosing(span)
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
        for anchor, after in self._anchors(function, spans, asks=not early and not definition):
            there = value == DEVICE and self._has_accelerator(anchor)
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

    def _anchors(self, function: Function | None, spans: list[Span], *, asks: bool) -> Iterator[tuple[Span, bool]]:
        """The statements to stand beside: several where each has to stand below what may set CUDA_VISIBLE_DEVICES."""
        body = self.module.tree.body if function is None else function.body
        direct = [span for span in spans if function is not None or not self._enclosing(span)]
        if self.project.facts.defers_cuda and direct and asks and not any(map(is_cell, body)):
            yield from ((anchor, False) for anchor in self._latest(body, direct))
        else:
            yield self._anchor(function, spans, asks=asks)

    def _latest(self, block: list[ast.stmt], spans: list[Span]) -> Iterator[Span]:
        """The statements of `block`, or inside them, before which the device is asked for as late as it can be."""
        left = list(spans)
        for index, statement in enumerate(block):
            inside = [span for span in left if _whole(self.module, statement).contains(span)]
            if not inside:
                continue
            parts = [(part, self._within_block(part, inside)) for part in _parts(statement)]
            parts = [(part, its) for part, its in parts if its]
            whole = sum(len(its) for _, its in parts) == len(inside)
            sets = any(map(sets_visible_devices, ast.walk(statement)))
            alone = len(parts) == 1 and len(inside) == len(left) and isinstance(statement, Branching)
            if not whole or not (sets or alone):
                yield _whole(self.module, block[_before_parser(block, index)])
                return
            for part, its in parts:
                yield from self._latest(part, its)
            left = [span for span in left if span not in inside]

    def _has_accelerator(self, anchor: Span) -> bool:
        """Whether a statement runs only behind a test for CUDA that has moved, as what it guards here did."""
        return any(
            isinstance(node, ast.If)
            and any(_whole(self.module, statement) == anchor for statement in node.body)
            and any(c.holds and self._asks_for_cuda(c.test) for c in atoms(node.test, True))
            for node in self.module.of_type(ast.If)
        )

    def _asks_for_cuda(self, test: ast.expr) -> bool:
        return isinstance(test, ast.Call) and self.module.callee(test) == CUDA_AVAILABLE

    def _within_block(self, block: list[ast.stmt], spans: list[Span]) -> list[Span]:
        return [span for span in spans if any(_whole(self.module, s).contains(span) for s in block)]

    def _reaches(self, anchor: Span, span: Span) -> bool:
        """Whether what stands at `anchor` has run wherever `span` runs: both are in the block of the former."""
        holders = [
            part
            for node in self.module.nodes
            if isinstance(node, Loop | Branching)
            for part in _parts(node)
            if any(_whole(self.module, statement) == anchor for statement in part)
        ]
        return all(self._within_block(part, [span]) for part in holders)

    def _anchor(self, function: Function | None, spans: list[Span], *, asks: bool) -> tuple[Span, bool]:
        """The statement to stand beside, and whether to stand after it."""
        span = self.module.span
        if function is not None:
            first = next(i for i, s in enumerate(function.body) if any(span(s).contains(x) for x in spans))
            return _whole(self.module, function.body[_before_parser(function.body, first)]), False
        body = self.module.tree.body
        cells = [i for i, s in enumerate(body) if is_cell(s)]
        if cells:
            return self._anchor_in_cell(cells, spans)
        direct = [x for x in spans if not self._enclosing(x)]
        first = next(
            (i for i, s in enumerate(body) if any(_whole(self.module, s).contains(x) for x in direct)), len(body)
        )
        stop = next(
            (i for i, s in enumerate(body) if isinstance(s, Function | ast.ClassDef | ast.For | ast.While | ast.With)),
            len(body),
        )
        imports = [i for i, s in enumerate(body[: min(first, stop)]) if _imports(s)]
        if self.project.facts.defers_cuda and asks and first < len(body):
            return _whole(self.module, body[first]), False
        if imports:
            return _whole(self.module, body[imports[-1]]), True
        return _whole(self.module, body[min(first, stop, len(body) - 1)]), False

    def _anchor_in_cell(self, cells: list[int], spans: list[Span]) -> tuple[Span, bool]:
        """Of a notebook: in the cell that needs it first, after the imports there or before the statement itself."""
        body = self.module.tree.body
        first = next(i for i, s in enumerate(body) if any(_whole(self.module, s).contains(x) for x in spans))
        start = max(i for i in cells if i < first)
        imports = [i for i in range(start + 1, first) if _imports(body[i])]
        at = imports[-1] if imports else first
        return _whole(self.module, body[at]), bool(imports)


def is_cell(statement: ast.stmt) -> bool:
    """Whether a statement of a module begins a cell of the notebook that it stands for."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == CELL


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


def _imports(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return True
    if isinstance(statement, ast.Try):
        return any(_imports(s) for s in statement.body)
    return isinstance(statement, ast.If) and any(_imports(s) for s in statement.body)


def _names_cuda(text: ast.Constant) -> bool:
    return isinstance(text.value, str) and text.value.lower().startswith(("cuda", "nccl"))


def _parts(statement: ast.AST) -> list[list[ast.stmt]]:
    """The blocks of a statement that branches or repeats; for an `elif`, before which nothing can stand, its own."""
    if not isinstance(statement, Loop | Branching):
        return []
    found = list(blocks(statement))
    if isinstance(statement, ast.Try):
        found += [handler.body for handler in statement.handlers]
    elif isinstance(statement, ast.If) and _is_elif(statement):
        found = [statement.body, *_parts(statement.orelse[0])]
    return found


def _is_elif(statement: ast.If) -> bool:
    """Whether the other branch of an `if` is an `elif`."""
    other = statement.orelse[0] if len(statement.orelse) == 1 else None
    return isinstance(other, ast.If) and other.col_offset == statement.col_offset


def _before_parser(body: list[ast.stmt], index: int) -> int:
    """Where the definition of a command line begins that the statement at `index` is a part of."""

    def adds_argument(statement: ast.stmt) -> bool:
        call = statement.value if isinstance(statement, ast.Expr) else None
        return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"

    start = index
    while start and adds_argument(body[start]) and adds_argument(body[start - 1]):
        start -= 1
    creates = start and adds_argument(body[start]) and "ArgumentParser" in ast.dump(body[start - 1])
    return start - 1 if creates else start


def _whole(module: Module, statement: ast.stmt) -> Span:
    """The statement's span with its decorators."""
    span = module.span(statement)
    decorators = getattr(statement, "decorator_list", [])
    if decorators:
        first = module.span(decorators[0])
        span = Span(first.line, first.column, span.end_line, span.end_column)
    return span


def unbound(module: Module) -> set[str]:
    """Names that a module reads and does not bind, builtins among them."""
    return {n.id for n in module.of_type(ast.Name) if isinstance(n.ctx, ast.Load) and module.lookup(n) is None}


def plan(module: Module, project: Project, edits: list[Edit]) -> Hoisted:
    """What each placeholder in `edits` becomes, and which statements to insert for it."""
    return _Planner(module, project, edits).plan()
