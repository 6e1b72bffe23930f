"""Why a draft's edits may not be applied where it stands, whatever the tests around it say."""

import ast
import io
import tokenize
from functools import cached_property

from tpuport.analysis.module import dotted
from tpuport.analysis.settings import is_setting
from tpuport.checks.cuda_library import FAISS
from tpuport.checks.data_parallel import PARTS, WRAPPERS
from tpuport.draft import Context, Draft
from tpuport.model import DropArgument, Rename, Replace
from tpuport.source.torch_floor import HELD

SILENT_WITHOUT_CUDA = {
    "autocast",
    "cuda-availability",
    "cuda-event",
    "cuda-seed",
    "custom-autocast",
    "device-comparison",
    "device-count",
    "empty-cache",
    "grad-scaler",
    "memory-statistics",
    "memory-stats",
    "out-of-memory-error",
    "tied-parameters",
}
"""Rules for what does not raise on a machine without CUDA."""

BROAD = {"Exception", "BaseException", "RuntimeError", "AssertionError", "torch.AcceleratorError"}
EXPECTS_FAILURE = {"raises", "assertRaises", "assertRaisesRegex", "suppress"}
PROBE_LENGTH = 4
"""Statements that a `try` which only asks whether CUDA works has at most."""


class Holds:
    """Looks at drafts one by one; each method gives a reason to hold the draft's edits back, or an empty string."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.module = context.module

    def reason(self, draft: Draft) -> str:
        """The first reason that applies."""
        if not draft.edits and not draft.own_guard:
            return ""
        return (
            self._floor(draft)
            or self._source(draft)
            or self._setting(draft)
            or self._failure(draft)
            or self._parallel(draft)
            or self._comment(draft)
        )

    def floor(self, needed: str) -> str:
        """Why a fix that needs torch `needed` can not be made; empty when the floor admits it."""
        if self.context.has_torch(needed):
            return ""
        project = self.context.project
        where = f" ({project.floor_source})" if project.floor_source else ""
        return f"{HELD} {needed}, and the floor is {project.min_torch}{where}"

    def _floor(self, draft: Draft) -> str:
        return self.floor(draft.rule.min_torch if draft.min_torch is None else draft.min_torch)

    def _source(self, draft: Draft) -> str:
        """What the file itself replaces, and what TorchScript compiles, do not follow a rewrite."""
        renamed = {edit.old for edit in draft.edits if isinstance(edit, Rename)}
        if patched := renamed & self.context.replaced:
            return f"the file replaces {min(patched)} itself, so both have to move together"
        if self.context.is_scripted(draft.node):
            return "TorchScript compiles this function, which knows neither the accelerator nor variables around it"
        return ""

    def _setting(self, draft: Draft) -> str:
        """A file of settings gets no import and no further name, which would be settings too."""
        reason = "the file only holds settings, which another program reads: that program has to choose"
        return reason if is_setting(self.module, draft.node) else ""

    def _failure(self, draft: Draft) -> str:
        """Code that asks whether CUDA works by letting it fail has another answer once nothing fails."""
        if any(
            isinstance(parent, ast.With) and child in parent.body and _expects_failure(parent, "cuda")
            for child, parent in self.module.ancestors(draft.node)
        ):
            return "the failure that is expected here is one of CUDA"
        if draft.rule.name in SILENT_WITHOUT_CUDA or self.context.guards.has_accelerator(draft.node):
            return ""
        for child, parent in self.module.ancestors(draft.node):
            expected = isinstance(parent, ast.With) and child in parent.body and _expects_failure(parent)
            probe = isinstance(parent, ast.Try) and child in parent.body and self._is_probe(parent)
            if expected or probe:
                return "what happens without CUDA is decided here by its failure"
        return ""

    def _parallel(self, draft: Draft) -> str:
        """What counts or numbers devices to spread a model over them from one process."""
        if draft.rule.name not in ("device-count", "device-literal"):
            return ""
        around = {parent for _, parent in self.module.ancestors(draft.node)}
        if around & self._spreads:
            return "it spreads a model over several CUDA devices from one process"
        if self.module.function(draft.node) in self._indexing:
            return "it numbers the CUDA devices of faiss"
        return ""

    @cached_property
    def _indexing(self) -> set[ast.AST]:
        """Functions that use what faiss has for CUDA."""
        found = (self.module.function(use.node) for use in self.module.uses if FAISS.match(use.name))
        return {function for function in found if function is not None}

    @cached_property
    def _spreads(self) -> set[ast.AST]:
        """Functions that call the parts of `DataParallel`, and classes made of it."""
        uses = [use for use in self.module.uses if use.name in PARTS and self.module.call_of(use.node)]
        functions = {function for use in uses if (function := self.module.function(use.node))}
        classes: list[ast.ClassDef] = self.module.of_type(ast.ClassDef)
        return {*functions, *(c for c in classes if any(self.module.qualified(base) in WRAPPERS for base in c.bases))}

    def _is_probe(self, block: ast.Try) -> bool:
        """Whether a short `try` catches everything and then only says so: by a constant, or by nothing."""
        if len(block.body) > PROBE_LENGTH:
            return False
        return any(
            (handler.type is None or self._catches_broadly(handler.type)) and all(map(_only_says_so, handler.body))
            for handler in block.handlers
        )

    def _catches_broadly(self, caught: ast.expr) -> bool:
        parts = caught.elts if isinstance(caught, ast.Tuple) else [caught]
        return any((self.module.qualified(part) or dotted(part)) in BROAD for part in parts)

    def _comment(self, draft: Draft) -> str:
        """A comment on an argument or in an expression that goes would go with it."""
        for edit in draft.edits:
            if isinstance(edit, DropArgument):
                lines = range(edit.argument.line, edit.argument.end_line + 1)
                if edit.span.line != edit.span.end_line and self._commented.intersection(lines):
                    return "a comment stands on an argument that has to go"
            if isinstance(edit, Replace) and edit.span.line != edit.span.end_line:
                kept = {line for hole in edit.holes for line in range(hole.line, hole.end_line)}
                if self._commented.intersection(range(edit.span.line, edit.span.end_line)) - kept:
                    return "a comment stands in the code that has to go"
        return ""

    @cached_property
    def _commented(self) -> set[int]:
        """Lines with a comment."""
        tokens = tokenize.generate_tokens(io.StringIO(self.module.source).readline)
        return {token.start[0] for token in tokens if token.type == tokenize.COMMENT}


def _expects_failure(block: ast.With, word: str = "") -> bool:
    """Whether a block is expected to fail, with a text that has `word` in it."""
    calls = [item.context_expr for item in block.items if isinstance(item.context_expr, ast.Call)]
    expecting = [call for call in calls if dotted(call.func).rpartition(".")[2] in EXPECTS_FAILURE]
    texts = [n.value for call in expecting for n in ast.walk(call) if isinstance(n, ast.Constant)]
    return bool(expecting) and (not word or any(word in str(text).lower() for text in texts))


def _only_says_so(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Return(value=None | ast.Constant()) | ast.Assign(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Constant()):
            return True
    return False
