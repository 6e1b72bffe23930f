"""The libcst side of rewriting: edits by span become changes of the concrete syntax tree."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from tpuport.errors import TpuportError
from tpuport.model import (
    DropArgument,
    Edit,
    GuardStatement,
    InsertAfter,
    InsertArgument,
    InsertBefore,
    RemoveStatement,
    Rename,
    Replace,
    SetArgument,
    SetAttribute,
    Span,
    UnwrapWith,
)
from tpuport.rewrite.hoist import Hoisted, Insertion
from tpuport.rewrite.import_edits import rebind
from tpuport.rewrite.imports import ImportPlan, Rebind
from tpuport.rewrite.layout import broken, broken_with
from tpuport.rewrite.precedence import fit
from tpuport.rewrite.style import Style

COMMA = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def _span(place: CodeRange) -> Span:
    return Span(place.start.line, place.start.column, place.end.line, place.end.column)


Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
Line = TypeVar("Line", bound=cst.BaseStatement)


def _alone(statement: cst.BaseSmallStatement) -> cst.SimpleStatementLine:
    return cst.SimpleStatementLine([statement.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)])


def _ended(line: Statement, semicolon: cst.Semicolon | cst.MaybeSentinel) -> Statement:
    """The line with the semicolon that ended it, which in a notebook keeps its value from being shown."""
    if not isinstance(line, cst.SimpleStatementLine) or not isinstance(semicolon, cst.Semicolon):
        return line
    return line.with_changes(body=[*line.body[:-1], line.body[-1].with_changes(semicolon=semicolon)])


def _split(lines: Sequence[cst.EmptyLine]) -> tuple[list[cst.EmptyLine], list[cst.EmptyLine]]:
    """Leading lines as blank ones and the rest, which begins with a comment."""
    blank = list(itertools.takewhile(lambda line: line.comment is None, lines))
    return blank, list(lines[len(blank) :])


@dataclass(slots=True)
class _Work:
    """The edits by the span of the node that they change."""

    expressions: dict[Span, list[Edit]] = field(default_factory=dict)
    guards: dict[Span, GuardStatement] = field(default_factory=dict)
    before: dict[Span, list[str]] = field(default_factory=dict)
    after: dict[Span, str] = field(default_factory=dict)
    removals: set[Span] = field(default_factory=set)
    unwraps: set[Span] = field(default_factory=set)
    insertions: dict[Span, list[Insertion]] = field(default_factory=dict)
    rebinds: dict[Span, list[Rebind]] = field(default_factory=dict)
    holes: set[Span] = field(default_factory=set)
    statements: dict[tuple[int, int], Span] = field(default_factory=dict)
    """Where a statement begins, with its span, that any of the above concerns as a whole.

    Only the beginnings of compound statements agree with those of `ast`: libcst counts a last semicolon in.
    """

    def statement(self, span: Span | None) -> Span | None:
        """The span, as the edits know it, of the statement that begins where `span` does."""
        return self.statements.get(span[:2]) if span is not None else None

    @classmethod
    def of(cls, edits: Sequence[Edit], hoisted: Hoisted, plan: ImportPlan) -> "_Work":
        """Sort the edits."""
        work = cls()
        for edit in edits:
            if isinstance(edit, GuardStatement):
                work.guards[edit.span] = edit
            elif isinstance(edit, InsertBefore):
                work.before.setdefault(edit.span, []).append(edit.code)
            elif isinstance(edit, InsertAfter):
                work.after[edit.span] = edit.code
            elif isinstance(edit, RemoveStatement):
                work.removals.add(edit.span)
            elif isinstance(edit, UnwrapWith):
                work.unwraps.add(edit.span)
            else:
                work.expressions.setdefault(edit.span, []).append(edit)
                work.holes.update(getattr(edit, "holes", ()))
        for insertion in hoisted.insertions:
            work.insertions.setdefault(insertion.anchor, []).append(insertion)
        for moved in plan.rebinds:
            work.rebinds.setdefault(moved.span, []).append(moved)
        placed = (*work.guards, *work.before, *work.after, *work.insertions)
        concerned = (*placed, *work.removals, *work.unwraps, *work.rebinds)
        work.statements = {span[:2]: span for span in concerned}
        return work


_ORDER = (Rename, SetAttribute, DropArgument, InsertArgument, SetArgument, Replace)


class _Rewriter(cst.CSTTransformer):
    def __init__(self, work: _Work, hoisted: Hoisted, plan: ImportPlan, style: Style) -> None:
        self.work = work
        self.hoisted = hoisted
        self.plan = plan
        self.style = style
        self.positions: dict[cst.CSTNode, CodeRange] = {}
        self.stack: list[cst.CSTNode] = []
        self.parts: dict[Span, cst.BaseExpression] = {}
        self.done: set[Span] = set()
        # By id, with the node itself held: an id is taken again once its node is gone.
        self.guards: dict[int, cst.CSTNode] = {}
        self.removed: dict[int, cst.CSTNode] = {}
        self.emptied: dict[int, cst.CSTNode] = {}
        self.new: dict[int, cst.CSTNode] = {}
        self.touched = 0
        self._marks: list[int] = []

    def span(self, node: cst.CSTNode) -> Span | None:
        """Where a node stood; a parenthesised tuple counts with its parentheses, as in `ast`."""
        place = self.positions.get(node)
        if place is None:
            return None
        span = _span(place)
        if isinstance(node, cst.Tuple | cst.GeneratorExp) and node.lpar:
            return Span(span.line, span.column - 1, span.end_line, span.end_column + 1)
        return span

    def on_visit(self, node: cst.CSTNode) -> bool:
        self.stack.append(node)
        if isinstance(node, cst.BaseStatement):
            self._marks.append(self.touched)
        return True

    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> "cst.CSTNode | cst.RemovalSentinel | cst.FlattenSentinel[cst.CSTNode]":
        self.stack.pop()
        span = self.span(original_node)
        if isinstance(original_node, cst.BaseExpression) and span is not None:
            return self._expression(original_node, updated_node, span)
        if isinstance(original_node, cst.SimpleStatementSuite):
            return self._suite(original_node, updated_node)
        if isinstance(original_node, cst.SimpleStatementLine):
            return self._line(original_node, updated_node, self.touched > self._marks.pop())
        if isinstance(original_node, cst.BaseCompoundStatement):
            touched = self.touched > self._marks.pop()
            assert isinstance(updated_node, cst.BaseCompoundStatement)
            if touched and isinstance(updated_node, cst.With):
                updated_node = broken_with(updated_node, *self._room())
            if isinstance(updated_node, cst.With) and self.work.statement(span) in self.work.unwraps:
                return self._unwrapped(self.work.statement(span), updated_node)
            if isinstance(updated_node, cst.If) and self._is_empty(updated_node):
                self.removed[id(updated_node)] = updated_node
                return updated_node
            return self._inserted(self._whole_span(original_node, span), updated_node)
        if isinstance(original_node, cst.IndentedBlock | cst.Module):
            return self._block(original_node, updated_node)
        return updated_node

    # Expressions

    def _expression(self, original: cst.BaseExpression, updated: cst.CSTNode, span: Span) -> cst.CSTNode:
        assert isinstance(updated, cst.BaseExpression)
        edits = self.work.expressions.get(span, ())
        if edits and self._is_outermost(span):
            for edit in sorted(edits, key=lambda e: _ORDER.index(type(e))):
                updated = self._apply(edit, updated, span)
            self.done.add(span)
            self.touched += 1
            if original.lpar and not updated.lpar:
                updated = updated.with_changes(lpar=original.lpar, rpar=original.rpar)
            elif self.stack:
                updated = fit(updated, self.stack[-1], original)
        if span in self.work.holes:
            self.parts[span] = updated
        return updated

    def _is_outermost(self, span: Span) -> bool:
        """Of nodes with the same span, the outer one is edited."""
        return not (self.stack and isinstance(self.stack[-1], cst.BaseExpression) and self.span(self.stack[-1]) == span)

    def _fill(
        self, edit: Replace | SetArgument | InsertArgument, span: Span, current: cst.BaseExpression
    ) -> cst.BaseExpression:
        self.parts[span] = current if span in edit.holes else self.parts.get(span, current)
        parts = [self.parts[hole] for hole in edit.holes]
        return self.style.filled(self.hoisted.fill(edit.span, edit.template), parts)

    def _apply(self, edit: Edit, node: cst.BaseExpression, span: Span) -> cst.BaseExpression:
        match edit:
            case Rename():
                text = self.plan.texts[edit.span]
                return node if text is None else cst.parse_expression(text)
            case SetAttribute(name=name):
                assert isinstance(node, cst.Attribute)
                return node.with_deep_changes(node.attr, value=name)
            case Replace():
                return self._fill(edit, span, node)
        assert isinstance(node, cst.Call)
        match edit:
            case DropArgument(argument=argument):
                return self._drop(node, argument)
            case InsertArgument():
                value = self._fill(edit, span, node)
                first = cst.Arg(value, comma=COMMA) if node.args else cst.Arg(value)
                return node.with_changes(args=[first, *node.args])
            case SetArgument():
                return self._set(node, edit, span)
        raise AssertionError(edit)

    def _drop(self, call: cst.Call, argument: Span) -> cst.Call:
        kept = [arg for arg in call.args if not self._stood_at(arg, argument)]
        if kept and len(kept) < len(call.args) and kept[-1] is not call.args[-1]:
            kept[-1] = kept[-1].with_changes(comma=call.args[-1].comma)
        return call.with_changes(args=kept)

    def _stood_at(self, arg: cst.Arg, argument: Span) -> bool:
        return self.parts.get(argument) is arg.value

    def _set(self, call: cst.Call, edit: SetArgument, span: Span) -> cst.Call:
        value = self._fill(edit, span, call)
        args = list(call.args)
        for index, arg in enumerate(args):
            if arg.keyword is not None and arg.keyword.value == edit.name:
                args[index] = arg.with_changes(value=value)
                return call.with_changes(args=args)
        equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        new = cst.Arg(value, cst.Name(edit.name), equal=equal)
        if args:
            last = args[-1]
            if isinstance(last.comma, cst.Comma):
                new = new.with_changes(comma=last.comma)
                args[-1] = last.with_changes(comma=self._separator(call))
            else:
                args[-1] = last.with_changes(comma=COMMA)
        return call.with_changes(args=[*args, new])

    def _separator(self, call: cst.Call) -> cst.Comma:
        """The comma between the arguments of a call that ends in one."""
        commas = [arg.comma for arg in call.args[:-1] if isinstance(arg.comma, cst.Comma)]
        if commas and not any(isinstance(c, cst.Comment) for c in _walk(commas[0])):
            return commas[0]
        opening = call.whitespace_before_args
        if isinstance(opening, cst.ParenthesizedWhitespace):
            return cst.Comma(whitespace_after=opening.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[]))
        return COMMA

    # Statements

    def _line(
        self, original: cst.SimpleStatementLine, updated: cst.CSTNode, touched: bool
    ) -> "cst.CSTNode | cst.FlattenSentinel[cst.CSTNode]":
        assert isinstance(updated, cst.SimpleStatementLine)
        lines = self._statements(original, updated.body)
        if lines is None:
            return self._broken(updated) if touched else updated
        own = [index for index, line in enumerate(lines) if id(line) not in self.new]
        if not own:
            self.removed[id(updated)] = updated
            return cst.FlattenSentinel([*lines, updated])
        last = _ended(lines[own[-1]], updated.body[-1].semicolon)
        lines[own[-1]] = self._same(lines[own[-1]], _with_trailing(last, updated.trailing_whitespace))
        blank, rest = _split(updated.leading_lines) if own[0] else ([], updated.leading_lines)
        lines[own[0]] = self._same(lines[own[0]], lines[own[0]].with_changes(leading_lines=rest))
        if own[0]:
            lines[0] = _with_leading(lines[0], blank)
        if touched:
            lines = [self._broken(line) if isinstance(line, cst.SimpleStatementLine) else line for line in lines]
        return cst.FlattenSentinel(lines)

    def _same(self, old: cst.CSTNode, new: Statement) -> Statement:
        """`new` in place of `old`, marked as that one was."""
        if id(old) in self.guards:
            self.guards[id(new)] = new
        return new

    def _statements(
        self, original: cst.SimpleStatementLine | cst.SimpleStatementSuite, body: Sequence[cst.BaseSmallStatement]
    ) -> list[Statement] | None:
        """One statement a line, with what is to stand before, around and after each; None if there is no such thing."""
        spans = [self.work.statement(self.span(statement)) for statement in original.body]
        if not any(spans):
            return None
        result: list[Statement] = []
        for span, statement in zip(spans, body, strict=True):
            if span is None:
                result.append(_alone(statement))
                continue
            self.done.add(span)
            before, after = self._around(span)
            result += before
            if span in self.work.guards:
                guard = self._guard(self.work.guards[span], statement)
                self.guards[id(guard)] = guard
                result.append(guard)
            elif span not in self.work.removals:
                result += map(_alone, rebind(statement, self.work.rebinds.get(span, [])))
            result += after
        return result

    def _guard(self, edit: GuardStatement, statement: cst.BaseSmallStatement) -> cst.If:
        guard = cst.If(self.style.expression(edit.condition), cst.IndentedBlock([_alone(statement)]))
        if not edit.otherwise:
            return guard
        other = self.style.statements(edit.otherwise)
        return guard.with_changes(
            orelse=other[0] if isinstance(other[0], cst.If) else cst.Else(cst.IndentedBlock(other))
        )

    def _around(self, span: Span) -> tuple[list[Statement], list[Statement]]:
        """New statements to stand before and after the one at `span`."""
        insertions = self.work.insertions.get(span, ())
        before: list[Statement] = [self._hoisted(i, blank=False) for i in insertions if not i.after]
        for code in self.work.before.get(span, ()):
            before += self.style.statements(self.hoisted.fill(span, code))
        after: list[Statement] = self.style.statements(self.work.after[span]) if span in self.work.after else []
        after += [self._hoisted(i, blank=not n) for n, i in enumerate(i for i in insertions if i.after)]
        self.new.update({id(line): line for line in (*before, *after)})
        return before, after

    def _suite(self, original: cst.SimpleStatementSuite, updated: cst.CSTNode) -> cst.CSTNode:
        """`if x: statement` becomes a block when a statement of it needs a line of its own."""
        assert isinstance(updated, cst.SimpleStatementSuite)
        lines = self._statements(original, updated.body)
        if lines is None:
            return updated
        return cst.IndentedBlock(lines or [_alone(cst.Pass())], header=updated.trailing_whitespace)

    def _whole_span(self, node: cst.CSTNode, span: Span | None) -> Span | None:
        """A decorated definition begins at its first decorator."""
        if span is not None and isinstance(node, cst.FunctionDef | cst.ClassDef) and node.decorators:
            first = self.span(node.decorators[0].decorator)
            if first is not None:
                return Span(first.line, first.column, span.end_line, span.end_column)
        return span

    def _inserted(
        self, span: Span | None, node: cst.BaseCompoundStatement
    ) -> "cst.CSTNode | cst.FlattenSentinel[cst.CSTNode]":
        span = self.work.statement(span)
        if span is None:
            return node
        self.done.add(span)
        before, after = self._around(span)
        if before:
            blank, rest = _split(node.leading_lines)
            line = cst.EmptyLine(indent=False)
            if isinstance(node, cst.FunctionDef | cst.ClassDef) and (blank or isinstance(self.stack[-1], cst.Module)):
                before[0] = _with_leading(before[0], [line] if blank else [])
                node = node.with_changes(leading_lines=[*(blank or [line]), *rest])
            else:
                before[0] = _with_leading(before[0], blank)
                node = node.with_changes(leading_lines=rest)
        return cst.FlattenSentinel([*before, node, *after])

    def _unwrapped(self, span: Span | None, node: cst.With) -> "cst.FlattenSentinel[cst.CSTNode]":
        """The body of a `with` statement, with the comments around its head before it."""
        if span is not None:
            self.done.add(span)
        body = node.body
        if isinstance(body, cst.SimpleStatementSuite):
            return cst.FlattenSentinel([_with_leading(line, node.leading_lines) for line in map(_alone, body.body)])
        assert isinstance(body, cst.IndentedBlock)
        lines = list(node.leading_lines)
        if body.header.comment:
            lines.append(cst.EmptyLine(comment=body.header.comment))
        return cst.FlattenSentinel([_with_leading(body.body[0], lines), *body.body[1:]])

    def _is_empty(self, node: cst.If) -> bool:
        """Whether all that an `if` held is removed, and what it asks may go with it."""
        only_if = node.orelse is None and not isinstance(self.stack[-1], cst.If)
        calls = [inner for inner in _walk(node.test) if isinstance(inner, cst.Call)]
        asks = all(isinstance(call.func, cst.Attribute) and call.func.attr.value == "is_available" for call in calls)
        return only_if and asks and id(node.body) in self.emptied

    def _hoisted(self, insertion: Insertion, *, blank: bool) -> Statement:
        if insertion.definition:
            [statement] = self.style.statements(insertion.definition.replace("NAME", insertion.name))
            return statement.with_changes(leading_lines=[cst.EmptyLine(indent=False)] * 2)
        value = self.style.expression(insertion.value)
        line = cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(insertion.name))], value)])
        return self._broken(line.with_changes(leading_lines=[cst.EmptyLine(indent=False)] if blank else []))

    def _broken(self, line: cst.SimpleStatementLine) -> cst.SimpleStatementLine:
        return broken(line, *self._room())

    def _room(self) -> tuple[str, str, int]:
        """The indentation here, one step of it, and the width that lines have."""
        depth = sum(isinstance(node, cst.IndentedBlock) for node in self.stack)
        return self.style.indent * depth, self.style.indent, self.style.width

    def _block(self, original: cst.IndentedBlock | cst.Module, updated: cst.CSTNode) -> cst.CSTNode:
        """Take out removed statements, keep their comments, and join guards that follow one another."""
        assert isinstance(updated, cst.IndentedBlock | cst.Module)
        body: list[cst.BaseStatement] = []
        pending: list[cst.EmptyLine] = []
        for statement in updated.body:
            if id(statement) in self.removed:
                assert isinstance(statement, cst.SimpleStatementLine | cst.If)
                pending += [line for line in statement.leading_lines if line.comment or not body]
                if isinstance(statement, cst.SimpleStatementLine) and statement.trailing_whitespace.comment:
                    pending.append(cst.EmptyLine(comment=statement.trailing_whitespace.comment))
                continue
            if pending:
                statement = _with_leading(statement, pending)
                pending = []
            joined = self._joined(body[-1], statement) if body else None
            if joined is not None:
                body[-1] = joined
            else:
                body.append(statement)
        changes: dict[str, object] = {"body": body or [cst.SimpleStatementLine([cst.Pass()])]}
        if isinstance(original, cst.Module):
            changes = {"body": body}
        if pending:
            changes["footer"] = [*pending, *updated.footer]
        result = updated.with_changes(**changes)
        if not body and not any(isinstance(part, cst.Comment) for part in _walk(result)):
            self.emptied[id(result)] = result
        return result

    def _joined(self, first: cst.BaseStatement, second: cst.BaseStatement) -> cst.If | None:
        """One guard for two that follow one another under the same test; None for other statements."""
        if id(first) not in self.guards or id(second) not in self.guards:
            return None
        assert isinstance(first, cst.If)
        assert isinstance(second, cst.If)
        alternatives = first.orelse is not None or second.orelse is not None
        if alternatives or second.leading_lines or not first.test.deep_equals(second.test):
            return None
        joined = first.with_changes(body=first.body.with_changes(body=[*first.body.body, *second.body.body]))
        self.guards[id(joined)] = joined
        return joined


def _walk(node: cst.CSTNode) -> list[cst.CSTNode]:
    return [node, *(inner for child in node.children for inner in _walk(child))]


def _with_leading(statement: Line, lines: Sequence[cst.EmptyLine]) -> Line:
    return statement.with_changes(leading_lines=[*lines, *getattr(statement, "leading_lines", ())])


def _with_trailing(line: Statement, trailing: cst.TrailingWhitespace) -> Statement:
    if isinstance(line, cst.SimpleStatementLine):
        return line.with_changes(trailing_whitespace=trailing)
    changed = line.with_deep_changes(line.body.body[-1], trailing_whitespace=trailing)
    assert isinstance(changed, cst.If)
    return changed


def apply(source: str, edits: Sequence[Edit], hoisted: Hoisted, plan: ImportPlan, torch: str, width: int) -> str:
    """The text with all edits made. Raises TpuportError when one finds no place: then none may be used."""
    wrapper = MetadataWrapper(cst.parse_module(source), unsafe_skip_copy=True)
    work = _Work.of(edits, hoisted, plan)
    for edit in edits:
        if isinstance(edit, DropArgument):
            work.holes.add(edit.argument)
    rewriter = _Rewriter(work, hoisted, plan, Style.of(wrapper.module, source, torch, width))
    rewriter.positions = dict(wrapper.resolve(PositionProvider))
    text = wrapper.module.visit(rewriter).code
    wanted = {*work.expressions, *work.statements.values()}
    if missing := wanted - rewriter.done:
        span = min(missing)
        raise TpuportError(f"line {span.line}, column {span.column + 1}: the rewriter finds no such expression")
    return text
