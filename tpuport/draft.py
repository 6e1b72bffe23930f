"""What checks work with: the context of one module, and the drafts that they make of findings."""

import ast
import re
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property

from packaging.version import Version

from tpuport.analysis.guards import Guards
from tpuport.analysis.module import Module, dotted
from tpuport.analysis.xla import Xla
from tpuport.model import Edit, Project, Rule, Safety, Severity


class Role(Enum):
    """What a construct means for the code around it."""

    MOVES = auto()
    """Has a counterpart on every accelerator."""
    CUDA_ONLY = auto()
    """Right as it stands where only CUDA runs it; wrong elsewhere."""
    BLOCKS = auto()
    """Has no counterpart that can be written without a person."""
    NEUTRAL = auto()
    """Harmless everywhere."""


@dataclass(slots=True)
class Draft:
    """A finding in the making: checks create it, the guards around it settle it."""

    rule: Rule
    node: ast.AST
    role: Role
    edits: tuple[Edit, ...] = ()
    message: str = ""
    reason: str = ""
    own_guard: tuple[Edit, ...] = ()
    """Puts the construct under a test for CUDA of its own; applied unless a test around it stays."""
    safety: Safety | None = None
    severity: Severity | None = None
    min_torch: str | None = None
    """The torch that the edits need, where it is not the rule's."""


SCRIPT_DECORATORS = {
    "torch.jit.script",
    "torch.jit.script_method",
    "torch.jit.export",
    "torch.jit.script_if_tracing",
}


@dataclass(eq=False)
class Context:
    """One module and what is known about it and its run."""

    module: Module
    project: Project

    @cached_property
    def guards(self) -> Guards:
        """The tests for CUDA, made once something asks for them: many modules have neither tests nor drafts."""
        return Guards(self.module)

    @cached_property
    def xla(self) -> Xla:
        """What the module does through PyTorch/XLA."""
        return Xla(self.module)

    @cached_property
    def own_cuda(self) -> set[str]:
        """The run's classes with a `cuda` method of their own that the module speaks of."""
        source = self.module.source
        return {
            name for name in self.project.facts.cuda_methods if name in source and re.search(rf"\b{name}\b", source)
        }

    @cached_property
    def replaced(self) -> set[str]:
        """Names of torch.cuda that the file assigns to, or patches by a string."""
        module = self.module
        found = {use.name for use in module.uses if isinstance(getattr(use.node, "ctx", None), ast.Store)}
        for call in module.of_type(ast.Call):
            function = dotted(call.func).rpartition(".")[2]
            texts = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            if function in ("patch", "setattr", "object", "delattr"):
                owners = [owner for a in call.args if (owner := module.qualified(a)).startswith("torch.cuda")]
                found.update(text for text in texts if text.startswith("torch.cuda."))
                found.update(f"{owner}.{text}" for owner in owners for text in texts)
        return {name for name in found if name.startswith("torch.cuda.")}

    @cached_property
    def _scripted(self) -> set[ast.AST]:
        module = self.module
        calls = [c for c in module.of_type(ast.Call) if module.callee(c) == "torch.jit.script" and c.args]
        named = {dotted(call.args[0]) for call in calls}
        functions: list[ast.FunctionDef] = module.of_type(ast.FunctionDef)
        found: set[ast.AST] = set()
        for function in functions:
            marks = {module.qualified(d.func if isinstance(d, ast.Call) else d) for d in function.decorator_list}
            owner = module.parents[function]
            bases = {module.qualified(base) for base in owner.bases} if isinstance(owner, ast.ClassDef) else set()
            forward = bool(calls) and function.name == "forward"
            if marks & SCRIPT_DECORATORS or "torch.jit.ScriptModule" in bases or function.name in named or forward:
                found.add(function)
        return found

    def is_scripted(self, node: ast.AST) -> bool:
        """Whether TorchScript compiles the function that `node` stands in, as far as this file shows."""
        return any(parent in self._scripted for _, parent in self.module.ancestors(node))

    def has_torch(self, version: str) -> bool:
        """Whether the run's torch floor is at least `version`; an empty version is always there."""
        return not version or Version(self.project.min_torch) >= Version(version)
