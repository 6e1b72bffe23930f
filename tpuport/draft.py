"""What checks work with: the context of one module, and the drafts that they make of findings."""

import ast
from dataclasses import dataclass, field
from enum import Enum, auto

from packaging.version import Version

from tpuport.analysis.guards import Guards
from tpuport.analysis.module import Module
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


@dataclass(eq=False, slots=True)
class Context:
    """One module and what is known about it and its run."""

    module: Module
    project: Project
    guards: Guards = field(init=False)

    def __post_init__(self) -> None:
        self.guards = Guards(self.module)

    def has_torch(self, version: str) -> bool:
        """Whether the run's torch floor is at least `version`; an empty version is always there."""
        return not version or Version(self.project.min_torch) >= Version(version)
