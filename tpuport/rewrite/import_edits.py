"""Edits of import statements: names re-pointed, dropped, and `import torch` added."""

import itertools
import sys
from collections.abc import Sequence

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from tpuport.model import Span
from tpuport.rewrite.imports import Rebind
from tpuport.source.ipython import CELL

COMMA = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def _dotted(name: str) -> cst.Attribute | cst.Name:
    node = cst.parse_expression(name)
    assert isinstance(node, cst.Attribute | cst.Name)
    return node


def rebind(statement: cst.BaseSmallStatement, rebinds: list[Rebind]) -> list[cst.BaseSmallStatement]:
    """An import statement with some of its names re-pointed; names that part company get a statement of their own."""
    origins = {rebind.name: rebind.origin for rebind in rebinds}
    if isinstance(statement, cst.Import):
        aliases = [a.with_changes(name=_dotted(origins.get(_local(a), a.evaluated_name))) for a in statement.names]
        return [statement.with_changes(names=aliases)]
    if not isinstance(statement, cst.ImportFrom) or isinstance(statement.names, cst.ImportStar):
        return [statement]
    moved = [a for a in statement.names if _local(a) in origins]
    kept = [a for a in statement.names if _local(a) not in origins]
    result: list[cst.BaseSmallStatement] = []
    if kept:
        result.append(statement.with_changes(names=_closed(statement.names, kept)))
    by_package: dict[str, list[cst.ImportAlias]] = {}
    for alias in moved:
        package, _, leaf = origins[_local(alias)].rpartition(".")
        renamed = alias.with_changes(name=cst.Name(leaf))
        if leaf != alias.evaluated_name and alias.asname is None:
            renamed = renamed.with_changes(asname=cst.AsName(cst.Name(alias.evaluated_name)))
        by_package.setdefault(package, []).append(renamed)
    for package, aliases in by_package.items():
        names = aliases if not kept and len(by_package) == 1 else _closed([], aliases)
        result.append(statement.with_changes(module=_dotted(package), names=names))
        if kept or len(by_package) > 1:
            result[-1] = result[-1].with_changes(lpar=None, rpar=None)
    return result


def _closed(old: Sequence[cst.ImportAlias], names: list[cst.ImportAlias]) -> list[cst.ImportAlias]:
    """The names with commas between them, and after the last one as there was before."""
    last = old[-1].comma if old else cst.MaybeSentinel.DEFAULT
    between = [n if isinstance(n.comma, cst.Comma) else n.with_changes(comma=COMMA) for n in names[:-1]]
    return [*between, names[-1].with_changes(comma=last)]


def _local(alias: cst.ImportAlias) -> str:
    name = alias.evaluated_alias or alias.evaluated_name
    return name if alias.asname else name.partition(".")[0]


class _DropImports(cst.CSTTransformer):
    def __init__(self, unused: dict[int, set[str]], positions: dict[cst.CSTNode, CodeRange]) -> None:
        self.unused = unused
        self.positions = positions

    def _kept(self, node: cst.Import | cst.ImportFrom, names: Sequence[cst.ImportAlias]) -> list[cst.ImportAlias]:
        place = self.positions.get(node)
        dropped = self.unused.get(place.start.line, set()) if place else set()
        return [alias for alias in names if _local(alias) not in dropped]

    def _left(
        self, original: cst.Import | cst.ImportFrom, updated: cst.Import | cst.ImportFrom
    ) -> "cst.BaseSmallStatement | cst.RemovalSentinel":
        if isinstance(original.names, cst.ImportStar):
            return updated
        kept = self._kept(original, original.names)
        if not kept:
            return cst.RemovalSentinel.REMOVE
        if len(kept) == len(original.names):
            return updated
        return updated.with_changes(names=_closed(original.names, kept))

    def leave_Import(
        self, original_node: cst.Import, updated_node: cst.Import
    ) -> "cst.BaseSmallStatement | cst.RemovalSentinel":
        """Drop what is unused."""
        return self._left(original_node, updated_node)

    def leave_ImportFrom(
        self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom
    ) -> "cst.BaseSmallStatement | cst.RemovalSentinel":
        """Drop what is unused."""
        return self._left(original_node, updated_node)


def drop_imports(source: str, unused: Sequence[tuple[Span, str]]) -> str:
    """The text without those imported names. An import with a comment on it stays."""
    wrapper = MetadataWrapper(cst.parse_module(source), unsafe_skip_copy=True)
    lines = source.split("\n")
    by_line: dict[int, set[str]] = {}
    for span, name in unused:
        if not any("#" in line for line in lines[span.line - 1 : span.end_line]):
            by_line.setdefault(span.line, set()).add(name)
    positions = dict(wrapper.resolve(PositionProvider))
    return wrapper.module.visit(_DropImports(by_line, positions)).code


def _small(statement: cst.BaseCompoundStatement | cst.SimpleStatementLine) -> cst.BaseSmallStatement | None:
    return statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None


def import_module(source: str, name: str) -> str:
    """The text with `import name` in its first run of imports, else after its docstring, else on top.

    torch goes before the first import of another library, a module of the standard library to its like by name.
    """
    module = cst.parse_module(source)
    body = list(module.body)
    in_cells = bool(body) and _is_cell(body[0])
    has_docstring = bool(body) and isinstance(_small(body[0]), cst.Expr) and not in_cells
    first = _first_imports(body, name) if in_cells else int(has_docstring)
    end = first
    while end < len(body) and isinstance(_small(body[end]), cst.Import | cst.ImportFrom):
        end += 1
    statement = cst.SimpleStatementLine([cst.Import([cst.ImportAlias(cst.Name(name))])])
    blank = [cst.EmptyLine(indent=False)]
    if end == first == 0 and body and not any(line.comment for line in module.header):
        body[0] = body[0].with_changes(leading_lines=[*module.header, *body[0].leading_lines])
        module = module.with_changes(header=[])
    at = next((index for index in range(first, end) if _comes_after(body[index], name)), end)
    standard = name in sys.stdlib_module_names
    if end == first:
        statement = statement.with_changes(leading_lines=blank if has_docstring else [])
        if at < len(body) and not body[at].leading_lines:
            body[at] = body[at].with_changes(leading_lines=blank)
    elif standard and at > first:
        pass  # right below its like
    elif at < end:
        statement = statement.with_changes(leading_lines=body[at].leading_lines)
        apart = standard and not _is_standard(body[at])
        body[at] = body[at].with_changes(leading_lines=blank if apart else [])
    else:
        statement = statement.with_changes(leading_lines=blank)
    return module.with_changes(body=[*body[:at], statement, *body[at:]]).code


def _first_imports(body: Sequence[cst.BaseCompoundStatement | cst.SimpleStatementLine], name: str) -> int:
    """Where the imports of a notebook begin, if nothing before them uses `name`; else where its first cell begins."""
    for index, (cell, statement) in enumerate(itertools.pairwise(body), 1):
        if _is_cell(cell) and isinstance(_small(statement), cst.Import | cst.ImportFrom):
            return index
        if f"{name}." in cst.Module([]).code_for_node(statement):
            break
    return 1


def _is_cell(statement: cst.BaseCompoundStatement | cst.SimpleStatementLine) -> bool:
    """Whether a statement marks where a cell of a notebook begins."""
    small = _small(statement)
    call = small.value if isinstance(small, cst.Expr) else None
    return isinstance(call, cst.Call) and isinstance(call.func, cst.Name) and call.func.value == CELL


def _comes_after(statement: cst.BaseCompoundStatement | cst.SimpleStatementLine, name: str) -> bool:
    """Whether an import belongs below that of the module `name`."""
    if not _is_standard(statement):
        return True
    small = _small(statement)
    if name not in sys.stdlib_module_names or _is_future(small):
        return False
    return isinstance(small, cst.ImportFrom) or (isinstance(small, cst.Import) and small.names[0].evaluated_name > name)


def _is_future(statement: cst.BaseSmallStatement | None) -> bool:
    module = statement.module if isinstance(statement, cst.ImportFrom) else None
    return isinstance(module, cst.Name) and module.value == "__future__"


def _is_standard(statement: cst.BaseCompoundStatement | cst.SimpleStatementLine) -> bool:
    """Whether an import is of the standard library."""
    small = _small(statement)
    if isinstance(small, cst.ImportFrom):
        name = cst.Module([]).code_for_node(small.module) if small.module and not small.relative else ""
    else:
        name = small.names[0].evaluated_name if isinstance(small, cst.Import) else ""
    return name.partition(".")[0] in sys.stdlib_module_names
