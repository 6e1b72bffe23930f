"""nn.Module.__call__ led elsewhere and back, twice a step, at no cost.

To set an attribute of nn.Module makes Python go through its subclasses, hundreds of them, and forget what it has cached
of each: 0.2 ms a step, measured with a step of 1.3 ms on one core. So the function stays, and its code is exchanged.
Dynamo knows it by identity; while a model call is under way, when Dynamo may look, it has its own code.
"""

import types
from collections.abc import Callable
from typing import Any

import torch

Call = Callable[..., Any]


def target(*_arguments: Any, **_keywords: Any) -> Any:
    """Stands for the global name that `_leading_to` puts in its place."""
    raise NotImplementedError


def _leading_to(name: str) -> types.CodeType:
    """Return the code of a call that hands all it gets to the global `name`."""

    def call(module: torch.nn.Module, /, *arguments: Any, **keywords: Any) -> Any:
        return target(module, *arguments, **keywords)

    return call.__code__.replace(co_names=(name,), co_name="_wrapped_call_impl")


class ModuleCall:
    """The function, and what it may lead to: `original` does what it did before."""

    def __init__(self) -> None:
        function: Any = torch.nn.Module.__call__
        self._function: types.FunctionType = function
        self._code = function.__code__
        self.original: Call = types.FunctionType(self._code, function.__globals__, function.__name__)

    def code_for(self, name: str, call: Call) -> types.CodeType:
        """Return the code to be put in place so that every module's call goes to `call`; `name` is its alone."""
        hidden = f"_tpuport_{name}"
        self._function.__globals__[hidden] = call
        return _leading_to(hidden)

    def put(self, code: types.CodeType | None) -> types.CodeType:
        """Put `code` in place, or with None the function's own, and return what was there."""
        before = self._function.__code__
        self._function.__code__ = code or self._code
        return before

    @property
    def is_reached(self) -> bool:
        """Whether a module's call comes here: torch.fx puts a function of its own in its place while it traces."""
        return torch.nn.Module.__call__ is self._function
