"""How a file writes, so that generated code looks like it: quotes, width, indentation, torch's local name."""

import re
from dataclasses import dataclass

import libcst as cst

from tpuport.rewrite.precedence import fit

HOLE = re.compile(r"\{(\d)\}")
HOLE_NAME = "tpuport_hole_{}_"


@dataclass(frozen=True, slots=True)
class Style:
    """The style of one file; `width` is in characters."""

    quote: str
    width: int
    indent: str
    torch: str
    config: cst.PartialParserConfig

    @classmethod
    def of(cls, module: cst.Module, source: str, torch: str, width: int) -> "Style":
        """The style that `source` shows; `torch` is the local name of that package."""
        quote = "'" if source.count("'") > source.count('"') else '"'
        return cls(quote, width, module.default_indent, torch, module.config_for_parsing)

    def expression(self, text: str) -> cst.BaseExpression:
        """Generated code as an expression in the file's style."""
        if self.quote == "'":
            text = text.replace('"', "'")
        node = cst.parse_expression(text, config=self.config)
        if self.torch == "torch":
            return node
        renamed = node.visit(_RenameTorch(self.torch))
        assert isinstance(renamed, cst.BaseExpression)
        return renamed

    def statement(self, text: str) -> cst.SimpleStatementLine | cst.BaseCompoundStatement:
        """Generated code as a statement in the file's style."""
        (only,) = self.statements(text)
        return only

    def statements(self, text: str) -> list[cst.SimpleStatementLine | cst.BaseCompoundStatement]:
        """Generated code, indented by four spaces a step, as statements in the file's style."""
        if self.quote == "'":
            text = text.replace('"', "'")
        text = re.sub("^(?: {4})+", lambda found: self.indent * (len(found[0]) // 4), text, flags=re.MULTILINE)
        module = cst.parse_module(text, config=self.config)
        first = module.body[0]
        body = [first.with_changes(leading_lines=[*module.header, *first.leading_lines]), *module.body[1:]]
        if self.torch != "torch":
            renamed = module.with_changes(body=body).visit(_RenameTorch(self.torch))
            body = list(renamed.body)
        return body

    def filled(self, template: str, parts: list[cst.BaseExpression]) -> cst.BaseExpression:
        """A template with `{0}`, `{1}`… replaced by `parts`, in parentheses where they need them."""
        text = HOLE.sub(lambda found: HOLE_NAME.format(found[1]), template)
        node = self.expression(text).visit(_FillHoles(parts))
        assert isinstance(node, cst.BaseExpression)
        return node


class _RenameTorch(cst.CSTTransformer):
    def __init__(self, name: str) -> None:
        self.name = name

    def visit_Attribute_attr(self, node: cst.Attribute) -> None:
        """Attributes are looked at from their root only."""

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        """Put the local name at the root of a chain."""
        if isinstance(original_node.value, cst.Name) and original_node.value.value == "torch":
            return updated_node.with_changes(value=cst.Name(self.name))
        return updated_node


class _FillHoles(cst.CSTTransformer):
    def __init__(self, parts: list[cst.BaseExpression]) -> None:
        self.parts = {HOLE_NAME.format(number): part for number, part in enumerate(parts)}
        self.stack: list[cst.CSTNode] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        self.stack.append(node)
        return True

    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode:
        self.stack.pop()
        if isinstance(original_node, cst.Name) and original_node.value in self.parts:
            part = self.parts[original_node.value]
            return fit(part, self.stack[-1], original_node) if self.stack else part
        return updated_node
