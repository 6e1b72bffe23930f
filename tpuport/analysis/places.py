"""Which class or function a place in a module lies in."""

import ast

from tpuport.analysis.module import Module
from tpuport.model import Span


class Scopes:
    """The classes and functions of one module by the lines that they span."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._defined: list[tuple[int, int, ast.AST]] | None = None

    def around(self, span: Span) -> str:
        """The qualified name of the innermost definition around `span`, decorators included; empty outside of all."""
        inner = None
        for first, last, node in self._definitions():
            if first > span.line:
                break
            if span.line <= last:
                inner = node
        return self._name(inner) if inner is not None else ""

    def _definitions(self) -> list[tuple[int, int, ast.AST]]:
        """Line ranges in source order, so that the last of them that holds a line is the innermost."""
        if self._defined is None:
            module = self._module
            nodes: list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef] = [
                *module.of_type(ast.FunctionDef),
                *module.of_type(ast.AsyncFunctionDef),
                *module.of_type(ast.ClassDef),
            ]
            lines = [
                (min([node.lineno, *(d.lineno for d in node.decorator_list)]), node.end_lineno or node.lineno, node)
                for node in nodes
            ]
            self._defined = sorted(lines, key=lambda item: (item[0], -item[1]))
        return self._defined

    def _name(self, node: ast.AST) -> str:
        names = [node.name]  # type: ignore[attr-defined]
        names += [
            parent.name
            for _, parent in self._module.ancestors(node)
            if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        ]
        return ".".join(reversed(names))
