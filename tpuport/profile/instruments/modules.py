"""Modules' names on the Python stack, from where torch_tpu writes them into the programs that it makes.

A call of the module `h.0.attn` goes through a function that bears this name: no state to keep, nothing to pass on.
"""

import functools
import importlib
import types
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from tpuport.profile.modules import MODULE_FILE, module_label

Call = Callable[..., Any]


@functools.cache
def named_frame(file: str, line: int, name: str) -> Call:
    """Return a function that calls its first argument with the others; on a stack it shows up as given."""
    code = _passing_on().__code__.replace(co_filename=file, co_firstlineno=line, co_name=name, co_qualname=name)
    return types.FunctionType(code, {})


def _passing_on() -> types.FunctionType:
    # Call and definition stand on one line: on a stack the line is the one that the code is said to begin at.
    passing: Any = lambda call, arguments, keywords: call(*arguments, **keywords)  # noqa: E731
    function: types.FunctionType = passing
    return function


class ModuleNames:
    """Names of the modules below every outermost module that was called."""

    def __init__(self) -> None:
        self._labels: weakref.WeakKeyDictionary[torch.nn.Module, str] = weakref.WeakKeyDictionary()
        self._by_id: dict[int, weakref.ref[torch.nn.Module]] = {}
        self._roots: Counter[str] = Counter()
        self.stopped = False

    def learn(self, root: torch.nn.Module) -> None:
        """Name `root` after its class, and the modules below it by their paths."""
        if root in self._labels:
            return
        kind = type(root).__name__
        self._roots[kind] += 1
        name = kind if self._roots[kind] == 1 else f"{kind} {self._roots[kind]}"
        for path, module in root.named_modules():
            self._labels[module] = module_label(name, path)
            self._by_id[id(module)] = weakref.ref(module)

    def stop(self) -> None:
        """From now on calls are not named any more, so that no timed step pays for it."""
        self.stopped = True

    def naming(self, call: Call) -> Call:
        """Return `call`, which takes a module first, in a form that names the module on the stack."""

        @functools.wraps(call)
        def named(module: torch.nn.Module, /, *arguments: Any, **keywords: Any) -> Any:
            return self.run(module, call, (module, *arguments), keywords)

        return named

    def run(self, module: torch.nn.Module, call: Call, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Run `call`, which runs `module`, below a frame with the module's name."""
        name = None if self.stopped or torch.compiler.is_compiling() else self._labels.get(module)
        if name is None:
            return call(*arguments, **keywords)
        return named_frame(MODULE_FILE, 1, name)(call, arguments, keywords)

    def of_node(self, stack: dict[str, Any]) -> str:
        """Return the name of the innermost module in a graph node's `nn_module_stack`.

        Its keys are identities, followed by `@1` and so on where a graph calls a module again.
        """
        for key in reversed(stack):
            identity = key.partition("@")[0]
            found = self._by_id.get(int(identity)) if identity.isdecimal() else None
            module = found() if found is not None else None
            if module is not None:
                return self._labels.get(module, "")
        return ""


def name_graph_nodes(names: ModuleNames) -> None:
    """Have torch_tpu's lowering of a compiled graph run every node below a frame that names the node's module."""
    interpreter: Any = importlib.import_module("torch_tpu._internal.export.export").EagerLikeFxInterpreter
    run_node = interpreter.run_node

    @functools.wraps(run_node)
    def named_run_node(self: Any, node: torch.fx.Node) -> Any:
        stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
        name = names.of_node(stack) if stack else ""
        return named_frame(MODULE_FILE, 1, name)(run_node, (self, node), {}) if name else run_node(self, node)

    interpreter.run_node = named_run_node
