"""What `--compile-target` names, found as it comes into being: modules' attributes, and classes of models.

A module of Python is looked at as soon as it has been executed, before its importer sees it; the script's own names as
they are assigned. A replaced function is therefore what all of the program sees, and nothing is imported early.
"""

import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import torch

from tpuport.profile.plan import Plan
from tpuport.profile.records import RecordWriter, TargetMissed

_SEEN_LIMIT = 40
MAIN = "__main__"


@dataclass(frozen=True, slots=True)
class Target:
    """One target as the user wrote it: `MODULE:ATTRIBUTE.PATH`, or a name whose module is to be found out."""

    text: str

    def path_in(self, module: str) -> tuple[str, ...]:
        """Return the attributes that lead from `module` to the target; none when it is elsewhere."""
        name, colon, rest = self.text.partition(":")
        if colon:
            return tuple(rest.split(".")) if name == module else ()
        return tuple(name.removeprefix(f"{module}.").split(".")) if name.startswith(f"{module}.") else ()

    @property
    def bare(self) -> tuple[str, ...]:
        """The attributes that lead to it from the script's own names, if it names no module."""
        return () if ":" in self.text else tuple(self.text.split("."))

    def is_class(self, kind: type, main_names: tuple[str, ...]) -> bool:
        """Whether the target names this class."""
        modules = main_names if kind.__module__ == MAIN else (kind.__module__,)
        names = {kind.__qualname__, *(f"{module}{dot}{kind.__qualname__}" for module in modules for dot in ".:")}
        return self.text in names


@dataclass(slots=True)
class Targets:
    """The targets of a run. `compile_function` and `compile_module` are called with what they name."""

    plan: Plan
    compile_function: Callable[[Callable[..., Any]], Callable[..., Any]]
    compile_module: Callable[[torch.nn.Module], None]
    found: set[Target] = field(default_factory=set)
    function_found: bool = False
    _targets: tuple[Target, ...] = ()
    _main: dict[str, Any] = field(default_factory=dict)
    _classes: set[str] = field(default_factory=set)
    _known: dict[type, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._targets = tuple(Target(text) for text in self.plan.compile_targets)

    def __bool__(self) -> bool:
        return bool(self._targets)

    @property
    def main_names(self) -> tuple[str, ...]:
        """What the module that runs as `__main__` can be called."""
        return MAIN, self.plan.module or Path(self.plan.script).stem

    def install(self) -> None:
        """Look at the modules that are there already, and at each that is imported from now on."""
        for name, module in tuple(sys.modules.items()):
            if self._concerns(name) and name != MAIN:
                self._look(name, module)
        sys.meta_path.insert(0, _Watch(self._concerns, self._look))

    def namespace(self, names: dict[str, Any]) -> MutableMapping[str, Any]:
        """Return the script's own names as the mapping that its top level is to be executed in."""
        self._main = names
        return _Namespace(names, self._assigned) if self else names

    def wants(self, module: torch.nn.Module) -> bool:
        """Whether a target names the class of this module of a model."""
        kind = type(module)
        if kind not in self._known:
            # fully_shard gives a module a class of its own, below the one that was written.
            kinds = [base for base in kind.__mro__ if issubclass(base, torch.nn.Module) and base is not torch.nn.Module]
            self._classes.add(kind.__name__)
            hits = [target for target in self._targets for base in kinds if target.is_class(base, self.main_names)]
            self.found.update(hits)
            self._known[kind] = bool(hits)
        return self._known[kind]

    def write_missed(self, writer: RecordWriter) -> None:
        """Record which targets named nothing, and what there was to name."""
        seen = [f"{name}()" for name, value in self._main.items() if isinstance(value, types.FunctionType)]
        shown = (*sorted(self._classes), *seen)[:_SEEN_LIMIT]
        for target in self._targets:
            if target not in self.found:
                writer.write(TargetMissed(target.text, shown))

    def _concerns(self, module: str) -> bool:
        return any(target.path_in(module) for target in self._targets)

    def _look(self, name: str, module: Any) -> None:
        for target in self._targets:
            if path := target.path_in(name):
                self._resolve(target, module, path)

    def _assigned(self, name: str, value: Any) -> Any:
        """A name of the script's own gets this value; return the one to keep."""
        for target in self._targets:
            paths = (target.bare, *(target.path_in(module) for module in self.main_names))
            path = next((path for path in paths if path and path[0] == name), ())
            if len(path) == 1:
                value = self._taken(target, value)
            elif path:
                self._resolve(target, value, path[1:])
        return value

    def _resolve(self, target: Target, owner: Any, path: tuple[str, ...]) -> None:
        *above, name = path
        for part in above:
            owner = getattr(owner, part, None)
        value = inspect.getattr_static(owner, name, None) if isinstance(owner, type) else getattr(owner, name, None)
        taken = self._taken(target, value)
        if taken is not value:
            setattr(owner, name, taken)

    def _taken(self, target: Target, value: Any) -> Any:
        """Compile `value`, if it is something that can be; return what takes its place."""
        if isinstance(value, staticmethod | classmethod):
            inner = self._taken(target, value.__func__)
            return value if inner is value.__func__ else type(value)(inner)
        if isinstance(value, torch.nn.Module):
            self.found.add(target)
            self.compile_module(value)
        elif callable(value) and not isinstance(value, type):
            self.found.add(target)
            self.function_found = True
            return self.compile_function(value)
        return value


class _Namespace(MutableMapping[str, Any]):
    """A module's dictionary that says what is assigned at the module's top level."""

    def __init__(self, names: dict[str, Any], assigned: Callable[[str, Any], Any]) -> None:
        self._names = names
        self._assigned = assigned

    def __getitem__(self, name: str) -> Any:
        return self._names[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._names[name] = self._assigned(name, value)

    def __delitem__(self, name: str) -> None:
        del self._names[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class _Watch(MetaPathFinder):
    """Finds nothing itself; has modules that concern somebody looked at when they have been executed."""

    def __init__(self, concerns: Callable[[str], bool], look: Callable[[str, Any], None]) -> None:
        self._concerns = concerns
        self._look = look

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if not self._concerns(fullname):
            return None
        finders = [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]
        specs = (finder.find_spec(fullname, path, target) for finder in finders)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            @functools.wraps(execute)
            def exec_module(module: types.ModuleType) -> None:
                execute(module)
                self._look(fullname, module)

            setattr(spec.loader, "exec_module", exec_module)  # noqa: B010 - mypy knows it as a method
        return spec
