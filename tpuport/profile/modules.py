"""Modules of the user's models, as stacks and reports name them."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile

MODULE_FILE = "tpuport:module"
"""File of the frames that stand for a module's call."""
_SEPARATOR = "|"


@dataclass(frozen=True, slots=True, order=True)
class Module:
    """A module by its path below an outermost one, as `named_modules` gives it; an empty path is that one itself."""

    root: str
    """Class of the outermost module, with a number where several are of one class."""
    path: str = ""

    def __str__(self) -> str:
        return f"{self.root}.{self.path}" if self.path else self.root


def module_label(root: str, path: str) -> str:
    """Return the name that a module's frame bears on a stack."""
    return f"{root}{_SEPARATOR}{path}"


def module_of(label: str) -> Module | None:
    """Return the module that a frame's name stands for."""
    root, found, path = label.partition(_SEPARATOR)
    return Module(root, path) if found else None


def common_module(modules: Iterable[Module | None]) -> Module | None:
    """Return the innermost module that holds all of `modules`; None where one of them is in no model."""
    known = list(modules)
    found = [module for module in known if module is not None]
    if not found or len(found) < len(known) or len({module.root for module in found}) > 1:
        return None
    paths = [module.path.split(".") if module.path else [] for module in found]
    shared = list(takewhile(lambda names: len(set(names)) == 1, zip(*paths, strict=False)))
    return Module(found[0].root, ".".join(names[0] for names in shared))


def innermost_module(stack: Iterable[tuple[str, str]]) -> Module | None:
    """Return the innermost module in a stack, given as (file, function), outermost first."""
    names = [function for file, function in stack if file == MODULE_FILE]
    return module_of(names[-1]) if names else None
