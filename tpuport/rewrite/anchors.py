"""Where a new statement may stand: before what needs it, and no sooner than it may be."""

import ast
from collections.abc import Iterator

from tpuport.analysis.guards import CUDA_AVAILABLE, atoms, blocks
from tpuport.analysis.module import Module
from tpuport.model import Project, Span
from tpuport.source.ipython import CELL
from tpuport.source.project import sets_visible_devices

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
Branching = ast.If | ast.Try | ast.With | ast.AsyncWith


class Anchors:
    """Finds the statements of one module beside which a new one may stand."""

    def __init__(self, module: Module, project: Project) -> None:
        self.module = module
        self.project = project
        self._functions = [node for node in module.nodes if isinstance(node, Function)]

    def enclosing(self, span: Span) -> list[Function]:
        """The functions whose body runs the code at `span`, outermost first."""
        return [f for f in self._functions if any(self.module.span(s).contains(span) for s in f.body)]

    def beside(self, function: Function | None, spans: list[Span], *, asks: bool) -> Iterator[tuple[Span, bool]]:
        """The statements to stand beside: several where each has to stand below what may set CUDA_VISIBLE_DEVICES."""
        body = self.module.tree.body if function is None else function.body
        direct = [span for span in spans if function is not None or not self.enclosing(span)]
        if self.project.facts.defers_cuda and direct and asks and not any(map(_is_cell, body)):
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

    def _anchor(self, function: Function | None, spans: list[Span], *, asks: bool) -> tuple[Span, bool]:
        """The statement to stand beside, and whether to stand after it."""
        span = self.module.span
        if function is not None:
            first = next(i for i, s in enumerate(function.body) if any(span(s).contains(x) for x in spans))
            return _whole(self.module, function.body[_before_parser(function.body, first)]), False
        body = self.module.tree.body
        cells = [i for i, s in enumerate(body) if _is_cell(s)]
        if cells:
            return self._anchor_in_cell(cells, spans)
        direct = [x for x in spans if not self.enclosing(x)]
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

    def _within_block(self, block: list[ast.stmt], spans: list[Span]) -> list[Span]:
        return [span for span in spans if any(_whole(self.module, s).contains(span) for s in block)]

    def reaches(self, anchor: Span, span: Span) -> bool:
        """Whether what stands at `anchor` has run wherever `span` runs: both are in the block of the former."""
        holders = [
            part
            for node in self.module.nodes
            if isinstance(node, Loop | Branching)
            for part in _parts(node)
            if any(_whole(self.module, statement) == anchor for statement in part)
        ]
        return all(self._within_block(part, [span]) for part in holders)

    def has_accelerator(self, anchor: Span) -> bool:
        """Whether a statement runs only behind a test for CUDA that has moved, as what it guards here did."""
        return any(
            any(_whole(self.module, statement) == anchor for statement in node.body)
            and any(c.holds and self._asks_for_cuda(c.test) for c in atoms(node.test, True))
            for node in self.module.of_type(ast.If)
        )

    def _asks_for_cuda(self, test: ast.expr) -> bool:
        return isinstance(test, ast.Call) and self.module.callee(test) == CUDA_AVAILABLE


def _is_cell(statement: ast.stmt) -> bool:
    """Whether a statement of a module begins a cell of the notebook that it stands for."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == CELL


def _imports(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return True
    if isinstance(statement, ast.Try):
        return any(_imports(s) for s in statement.body)
    return isinstance(statement, ast.If) and any(_imports(s) for s in statement.body)


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
        if isinstance(call, ast.Tuple) and len(call.elts) == 1:
            call = call.elts[0]  # a comma after the call
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
