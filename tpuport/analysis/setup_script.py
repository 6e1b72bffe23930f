"""What a setup.py asks for, told as of any other file that names packages, without running it."""

import ast
from collections.abc import Iterator

from tpuport.analysis.module import Module
from tpuport.kinds import PYTHON, packages
from tpuport.kinds.document import Document, Text, Word
from tpuport.model import Span

_SETUPS = ("setuptools.setup", "distutils.core.setup", "skbuild.setup")
_OPTIONAL = {"install_requires": False, "extras_require": True, "tests_require": True}


def read(module: Module) -> tuple[Document, dict[Span, ast.AST]]:
    """The requirements of every call of `setup`, and the string that each stands in by its place."""
    document = Document(PYTHON, Text(module.source))
    nodes: dict[Span, ast.AST] = {}
    for call in module.of_type(ast.Call):
        if module.callee(call) not in _SETUPS:
            continue
        for keyword in call.keywords:
            for text in _strings(module, keyword.value):
                span = module.span(text)
                nodes[span] = text
                if keyword.arg == "python_requires":
                    document.interpreters.append(Word(str(text.value), span))
                elif keyword.arg in _OPTIONAL:
                    optional = _OPTIONAL[keyword.arg]
                    if one := packages.requirement(str(text.value), span, optional=optional):
                        document.requirements.append(one)
    return document, nodes


def _strings(module: Module, value: ast.expr) -> Iterator[ast.Constant]:
    """The strings of a list or of the lists in a dict, written in place or given to a name at the top of the file."""
    if isinstance(value, ast.Name):
        assigned = [a.value for a in module.of_type(ast.Assign) if value.id in map(_name, a.targets)]
        if len(assigned) == 1 and not isinstance(assigned[0], ast.Name):
            yield from _strings(module, assigned[0])
    elif isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value
    elif isinstance(value, ast.List | ast.Tuple | ast.Set):
        for item in value.elts:
            yield from _strings(module, item)
    elif isinstance(value, ast.Dict):
        for item in value.values:
            yield from _strings(module, item)


def _name(target: ast.expr) -> str:
    return target.id if isinstance(target, ast.Name) else ""
