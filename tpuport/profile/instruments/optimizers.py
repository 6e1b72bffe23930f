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

    def __init__(self, writer: RecordWriter, compile_: Compile, graphs: Callable[[], int], *, capturable: bool) -> None:
        """`graphs` counts the graphs made so far: a step of which none is made was not compiled."""
        self._writer = writer
        self._compile = compile_
        self._graphs = graphs
        self._capturable = capturable
        self._classes: set[type] = set()
        self._changes: weakref.WeakKeyDictionary[torch.optim.Optimizer, str] = weakref.WeakKeyDictionary()
        self._said: set[type] = set()

    def install(self) -> None:
        """Watch optimizers being built."""
        initialise = torch.optim.Optimizer.__init__

        @functools.wraps(initialise)
        def watched(optimizer: Any, params: Any, defaults: dict[str, Any], *arguments: Any, **keywords: Any) -> None:
            capturable = self._capturable and "capturable" in defaults
            if capturable:
                # Otherwise the count of steps stays on the host, and a compiled step can't take it.
                defaults["capturable"] = True
            changes = ", with capturable=True and its learning rate as a tensor" if capturable else ""
            if defaults.get("fused"):
                # Torch keeps the fused implementations out of all graphs.
                defaults["fused"] = None
                changes += ", without fused=True, which torch.compile does not look into"
            initialise(optimizer, params, defaults, *arguments, **keywords)
            if capturable:
                _rates_as_tensors(optimizer)
            self._changes[optimizer] = changes
            # AdamW has its step from Adam: compiled for one, it is for the other.
            kind = next(kind for kind in type(optimizer).__mro__ if "step" in kind.__dict__)
            if kind not in self._classes:
                self._classes.add(kind)
                self._compile_class(kind, capturable=capturable)

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
                if capturable:
                    _rates_as_tensors(optimizer)
                graphs = self._graphs()
                if optimizer not in compiled:
                    compiled[optimizer] = self._compile(_copied(inner))
                compiled[optimizer](optimizer, None, *arguments, **keywords)
            self._say_what_came_of_it(optimizer, compiled=self._graphs() > graphs)
            return loss

        kind.step = torch.optim.Optimizer.profile_hook_step(step)
        kind.step.hooked = True

    def _say_what_came_of_it(self, optimizer: torch.optim.Optimizer, *, compiled: bool) -> None:
        kind = type(optimizer)
        if kind in self._said:
            return
        self._said.add(kind)
        if compiled:
            text = f"the step of {kind.__name__} is compiled too{self._changes.get(optimizer, '')}"
            self._writer.write(Note("compiled-step", text))
        else:
            text = f"torch.compile made no graph of the step of {kind.__name__}, which stays eager"
            self._writer.write(Note("step-not-compiled", text))


def _rates_as_tensors(optimizer: torch.optim.Optimizer) -> None:
    """Make tensors of learning rates: a number is part of a compiled step, and each new one compiles it anew.

    Schedules fill the tensor; scripts that set a rate themselves put a number in its place, and scripts that move
    their model after the optimizer was built leave the tensor behind.
    """
    for group in optimizer.param_groups:
        group["lr"] = torch.as_tensor(group["lr"], device=group["params"][0].device)


def _copied(function: types.FunctionType) -> types.FunctionType:
    """Return the function with code of its own: Dynamo keeps what it compiles by code, which optimizers would share."""
    code, name = function.__code__.replace(), function.__name__
    copied = types.FunctionType(code, function.__globals__, name, function.__defaults__, function.__closure__)
    copied.__kwdefaults__ = function.__kwdefaults__
    return copied
