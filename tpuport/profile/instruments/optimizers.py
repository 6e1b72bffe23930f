"""The mode that compiles the optimizer's step as well as the models."""

import functools
import types
import weakref
from collections.abc import Callable
from typing import Any

import torch

from tpuport.profile.records import Note, RecordWriter

Compile = Callable[[Callable[..., Any]], Callable[..., Any]]
_GRADIENT_DECORATORS = ("/torch/optim/optimizer.py", "/torch/utils/_contextlib.py")
"""Where the decorators are defined that turn gradients off around a step."""


class CompiledSteps:
    """Compiles step() of every optimizer class when its first optimizer is built.

    Hooks, and the closure if there is one, stay outside: they are the script's.
    """

    def __init__(self, writer: RecordWriter, compile_: Compile, *, capturable: bool) -> None:
        self._writer = writer
        self._compile = compile_
        self._capturable = capturable
        self._classes: set[type] = set()

    def install(self) -> None:
        """Watch optimizers being built."""
        initialise = torch.optim.Optimizer.__init__

        @functools.wraps(initialise)
        def watched(optimizer: Any, params: Any, defaults: dict[str, Any], *arguments: Any, **keywords: Any) -> None:
            capturable = self._capturable and "capturable" in defaults
            if capturable:
                # Otherwise the count of steps stays on the host, and a compiled step can't take it.
                defaults["capturable"] = True
            initialise(optimizer, params, defaults, *arguments, **keywords)
            if capturable:
                # As a number it would be part of the compiled step, which a schedule then has compiled anew each time.
                for group in optimizer.param_groups:
                    group["lr"] = torch.as_tensor(group["lr"], device=group["params"][0].device)
            if type(optimizer) not in self._classes:
                self._classes.add(type(optimizer))
                self._compile_class(type(optimizer), capturable=capturable)

        torch.optim.Optimizer.__init__ = watched

    def _compile_class(self, kind: Any, *, capturable: bool) -> None:
        if issubclass(kind, torch.optim.LBFGS):
            self._writer.write(Note("step-not-compiled", "LBFGS runs the model within its step, which stays eager"))
            return
        guarded = kind.step.__wrapped__
        inner = guarded
        if guarded.__code__.co_filename.endswith(_GRADIENT_DECORATORS):
            inner = guarded.__wrapped__
        compiled: weakref.WeakKeyDictionary[Any, Callable[..., Any]] = weakref.WeakKeyDictionary()

        @functools.wraps(guarded)
        def step(optimizer: Any, closure: Callable[[], Any] | None = None, *arguments: Any, **keywords: Any) -> Any:
            loss = None
            if closure is not None:
                with torch.enable_grad():
                    loss = closure()
            with torch.set_grad_enabled(inner is guarded or optimizer.defaults.get("differentiable", False)):
                if optimizer not in compiled:
                    compiled[optimizer] = self._compile(_copied(inner))
                compiled[optimizer](optimizer, None, *arguments, **keywords)
            return loss

        kind.step = torch.optim.Optimizer.profile_hook_step(step)
        kind.step.hooked = True
        how = ", with capturable=True and its learning rate as a tensor" if capturable else ""
        self._writer.write(Note("compiled-step", f"the step of {kind.__name__} is compiled too{how}"))


def _copied(function: types.FunctionType) -> types.FunctionType:
    """Return the function with code of its own: Dynamo keeps what it compiles by code, which optimizers would share."""
    code, name = function.__code__.replace(), function.__name__
    copied = types.FunctionType(code, function.__globals__, name, function.__defaults__, function.__closure__)
    copied.__kwdefaults__ = function.__kwdefaults__
    return copied
