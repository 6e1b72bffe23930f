"""torch.compile around the script's models, and what becomes of the script's own torch.compile calls."""

import functools
import inspect
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._dynamo.eval_frame import OptimizedModule
from torch.nn.modules.loss import _Loss

from tpuport.profile.frames import innermost_user_frame
from tpuport.profile.records import Frame, RecordWriter, Root, UserCompile

CallEnded = Callable[[torch.nn.Module], None]


def python_stack(start: types.FrameType | None) -> list[Frame]:
    """Return the stack that ends at `start`, outermost first."""
    frames: list[Frame] = []
    while start is not None:
        frames.append(Frame(start.f_code.co_filename, start.f_lineno, start.f_code.co_name))
        start = start.f_back
    return frames[::-1]


class ModelCalls:
    """Sees every outermost call of an nn.Module on the main thread; compiles the module first where the mode asks.

    nn.Module.__call__ is replaced only while no model call is under way, so that Dynamo never traces the replacement.
    """

    def __init__(
        self, writer: RecordWriter, prefixes: tuple[str, ...], *, compile_models: bool, call_ended: CallEnded
    ) -> None:
        self._writer = writer
        self._prefixes = prefixes
        self._compile_models = compile_models
        self._call_ended = call_ended
        self._thread = threading.get_ident()
        self._compile = torch.compile
        self._module_call = torch.nn.Module.__call__
        self._outermost = self._make_outermost()
        self.roots = 0

    def install(self) -> None:
        """Replace nn.Module.__call__, nn.Module.compile and torch.compile."""
        torch.nn.Module.__call__ = self._outermost
        torch.nn.Module.compile = self._make_module_compile()
        torch.compile = self._make_compile()

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """A model call or a compiled function is under way: calls in it are not outermost."""
        before = torch.nn.Module.__call__
        torch.nn.Module.__call__ = self._module_call
        try:
            yield
        finally:
            torch.nn.Module.__call__ = before

    def _make_outermost(self) -> Callable[..., Any]:
        @functools.wraps(self._module_call)
        def outermost_call(module: torch.nn.Module, /, *arguments: Any, **keywords: Any) -> Any:
            if torch.compiler.is_compiling() or not self._watched(module):
                return self._module_call(module, *arguments, **keywords)
            if self._compile_models and module._compiled_call_impl is None and not isinstance(module, OptimizedModule):
                self._compile_root(module)
            with self._inside():
                result = self._module_call(module, *arguments, **keywords)
            self._call_ended(module)
            return result

        return outermost_call

    def _watched(self, module: torch.nn.Module) -> bool:
        """Whether `module` is a model: losses, and transforms without any state, are not."""
        if threading.get_ident() != self._thread or not self._writer.owns_process or isinstance(module, _Loss):
            return False
        return any(True for tensors in (module.parameters(), module.buffers()) for _ in tensors)

    def _compile_root(self, module: torch.nn.Module) -> None:
        call_impl = module._call_impl

        def root(*args: Any, **kwargs: Any) -> Any:
            return call_impl(*args, **kwargs)

        # Dynamo skips torch's own frames, so a container such as Sequential needs a frame of ours around it. It also
        # keeps its cache by code object: each module needs its own, or they evict each other.
        name = type(module).__name__
        own = types.FunctionType(
            root.__code__.replace(co_name=name, co_qualname=name), globals(), name, None, root.__closure__
        )
        module._compiled_call_impl = self._compile(own)
        self.roots += 1
        parameters = tuple(inspect.signature(module.forward).parameters)
        self._writer.write(Root(name, self._user_frame(sys._getframe(2)), parameters))

    def _user_frame(self, frame: types.FrameType | None) -> Frame | None:
        return innermost_user_frame(python_stack(frame), self._prefixes)

    def _record(self, frame: types.FrameType, keywords: dict[str, Any]) -> None:
        self._writer.write(UserCompile(self._user_frame(frame), tuple(sorted(keywords)), self._compile_models))

    def _make_module_compile(self) -> Callable[..., None]:
        @functools.wraps(torch.nn.Module.compile)
        def module_compile(module: torch.nn.Module, *arguments: Any, **keywords: Any) -> None:
            self._record(sys._getframe(1), keywords)
            if self._compile_models:
                # What nn.Module.compile does, without being recorded twice.
                module._compiled_call_impl = self._compile(module._call_impl, *arguments, **keywords)

        return module_compile

    def _make_compile(self) -> Callable[..., Any]:
        @functools.wraps(self._compile)
        def recorded_compile(model: Any = None, **keywords: Any) -> Any:
            self._record(sys._getframe(1), keywords)
            if model is None:
                return lambda function: self._compiled(function, keywords)
            return self._compiled(model, keywords)

        return recorded_compile

    def _compiled(self, model: Any, keywords: dict[str, Any]) -> Any:
        """Compile what the user wants compiled; in eager modes, pass it through."""
        if not self._compile_models:
            return model
        compiled = self._compile(model, **keywords)
        if isinstance(model, torch.nn.Module):
            return compiled

        @functools.wraps(model)
        def entry(*arguments: Any, **given: Any) -> Any:
            if torch.compiler.is_compiling():
                return model(*arguments, **given)
            with self._inside():
                return compiled(*arguments, **given)

        return entry
