"""Imports of libraries that exist for CUDA alone, with what stands in for each on a TPU."""

import ast
import re
from collections.abc import Iterator

from tpuport.analysis.libraries import STAND_INS, library_of
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule, Severity


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every import of such a library; optional imports (under `try`) are told as information."""
    module = context.module
    imports: list[ast.Import | ast.ImportFrom] = [*module.of_type(ast.Import), *module.of_type(ast.ImportFrom)]
    for node in imports:
        for name in _imported(node):
            library = library_of(name)
            if not library:
                continue
            optional = any(isinstance(parent, ast.Try) for _, parent in module.ancestors(node))
            yield Draft(
                rule,
                node,
                Role.NEUTRAL,
                message=f"{library} is for CUDA only",
                reason=f"on a TPU use {STAND_INS[library]}",
                severity=Severity.INFO if optional else None,
            )
            break
    for use in module.uses:
        if FAISS.match(use.name):
            reason = "on a TPU host use an index for the CPU"
            yield Draft(rule, use.node, Role.NEUTRAL, message=f"{use.name} is for CUDA only", reason=reason)


FAISS = re.compile(r"faiss\.(contrib\.torch_utils\.)?\w*gpu", re.IGNORECASE)
"""The names of faiss, which itself runs anywhere, that are for CUDA."""


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif not node.level and node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
