"""torch.compile around the script's models, and what becomes of the script's own torch.compile calls."""

import functools
import inspect
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._dynamo.eval_frame import OptimizedModule
from torch.nn.modules.loss import _Loss

from tpuport.profile.frames import innermost_user_frame
from tpuport.profile.instruments.module_call import ModuleCall
from tpuport.profile.instruments.modules import ModuleNames
from tpuport.profile.instruments.numbers import Numbers
from tpuport.profile.instruments.targets import Targets
from tpuport.profile.records import LOST_GRADIENTS, Frame, Note, RecordWriter, Root, UserCompile

CallEnded = Callable[[str], None]
"""Told the class of a model, or the name of a function, of which an outermost call has ended."""
CallBegins = Callable[[types.FrameType], None]
"""Told who calls when an outermost call begins."""


_LOSES_GRADIENTS = (torch.nn.LSTM, torch.nn.GRU)
"""Modules whose outputs do not require a gradient where torch_tpu 0.2.0 has compiled them; nn.RNN is right."""


def python_stack(start: types.FrameType | None) -> list[Frame]:
    """Return the stack that ends at `start`, outermost first."""
    frames: list[Frame] = []
    while start is not None:
        frames.append(Frame(start.f_code.co_filename, start.f_lineno, start.f_code.co_name))
        start = start.f_back
    return frames[::-1]


class ModelCalls:
    """Sees every outermost call of an nn.Module on the main thread; compiles the module first where the mode asks.

    nn.Module.__call__ leads here only while no model call is under way, so that Dynamo never traces the replacement.
    With targets, only what they name is compiled.
    """

    def __init__(
        self,
        writer: RecordWriter,
        prefixes: tuple[str, ...],
        names: ModuleNames,
        numbers: Numbers,
        *,
        compile_models: bool,
        call_begins: CallBegins,
        call_ended: CallEnded,
    ) -> None:
        self._writer = writer
        self._prefixes = prefixes
        self._numbers = numbers
        self._compile_models = compile_models
        self._call_begins = call_begins
        self._call_ended = call_ended
        self._thread = threading.get_ident()
        self._compile = torch.compile
        self._entrance = ModuleCall()
        self._module_call = self._entrance.original
        self._names = names
        self._named_call = names.naming(self._module_call)
        # Dynamo must not meet any function of tpuport's in a model; there the nodes of its graphs bear the names.
        self._inner_call = self._module_call if compile_models else self._named_call
        self._calls_code = self._entrance.code_for("outermost", self._make_outermost())
        self._named_code = None if compile_models else self._entrance.code_for("named", self._named_call)
        self._under_way = False
        self._targets: Targets | None = None
        self._seen: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()
        self._recurrent: dict[str, Frame | None] = {}

    def install(self, targets: Targets) -> None:
        """Replace what nn.Module.__call__ does, nn.Module.compile and torch.compile."""
        self._targets = targets or None
        self._entrance.put(self._calls_code)
        torch.nn.Module.compile = self._make_module_compile()
        torch.compile = self._make_compile()

    def compile_module(self, module: torch.nn.Module) -> None:
        """Compile the calls of `module`, where the mode asks for it and nothing has compiled them yet."""
        if self._compile_models and module._compiled_call_impl is None and not isinstance(module, OptimizedModule):
            self._note_recurrence(module, sys._getframe(1))
            module._compiled_call_impl = self._compiled_call(module, module._call_impl)

    def _note_recurrence(self, module: torch.nn.Module, frame: types.FrameType) -> None:
        for name, part in module.named_modules():
            kept_out = getattr(part.forward, "_torchdynamo_disable", False)
            if isinstance(part, _LOSES_GRADIENTS) and not kept_out and next(part.parameters()).device.type == "tpu":
                self._recurrent.setdefault(f"{name or 'model'}: nn.{type(part).__name__}", self._user_frame(frame))

    def tell_lost_gradients(self) -> None:
        """Write which compiled modules will have no gradients, now that some are asked for."""
        for what, frame in self._recurrent.items():
            name = what.partition(":")[0]
            text = (
                f"torch_tpu 0.2.0 loses the gradients of a compiled nn.LSTM or nn.GRU ({what}). Keep it out of the "
                f"graph: `{name}.forward = torch.compiler.disable({name}.forward)`. `tpuport lint` finds it: "
                "compiled-recurrence."
            )
            self._writer.write(Note(LOST_GRADIENTS, text, frame))

    def compile_function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return what is to be called in place of `function`; its outermost calls are model calls."""
        name = getattr(function, "__name__", type(function).__name__)
        compiled = function
        if self._compile_models:
            compiled = self._compile(function)
            self._writer.write(Root(name, self._user_frame(sys._getframe(1)), _parameters(function)))
        return self._entry(function, compiled, name)

    def _entry(self, function: Callable[..., Any], compiled: Callable[..., Any], name: str) -> Callable[..., Any]:
        @functools.wraps(function)
        def entry(*arguments: Any, **keywords: Any) -> Any:
            if torch.compiler.is_compiling():
                return function(*arguments, **keywords)
            if not self._is_outermost():
                return compiled(*arguments, **keywords)
            self._call_begins(sys._getframe(1))
            with self._inside():
                result = compiled(*arguments, **keywords)
            self._call_ended(name)
            return result

        return entry

    def _is_outermost(self) -> bool:
        mine = threading.get_ident() == self._thread and self._writer.owns_process
        return mine and not self._under_way and self._entrance.is_reached

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """A model call or a compiled function is under way: calls in it are not outermost."""
        before, under_way = self._entrance.put(None if self._names.stopped else self._named_code), self._under_way
        self._under_way = True
        try:
            yield
        finally:
            self._entrance.put(before)
            self._under_way = under_way

    def _make_outermost(self) -> Callable[..., Any]:
        @functools.wraps(self._module_call)
        def outermost_call(module: torch.nn.Module, /, *arguments: Any, **keywords: Any) -> Any:
            if torch.compiler.is_compiling() or not self._entrance.is_reached or not self._watched(module):
                # A checkpointed module runs again on autograd's thread: its parts keep their names there.
                return self._inner_call(module, *arguments, **keywords)
            if module not in self._seen:
                self._seen.add(module)
                if (owner := _forward_under_way(sys._getframe(1))) is not None:
                    self._take_over_forward(type(owner))
                    return self._module_call(module, *arguments, **keywords)
                self._compile_what_is_wanted(module)
            self._names.learn(module)
            self._call_begins(sys._getframe(1))
            with self._inside():
                result = self._numbers.outermost(self._named_call, module, arguments, keywords)
            self._model_call_ended(module)
            return result

        return outermost_call

    def _model_call_ended(self, module: torch.nn.Module) -> None:
        if self._targets is None or not self._targets.function_found:
            self._call_ended(type(module).__name__)

    def _compile_what_is_wanted(self, module: torch.nn.Module) -> None:
        if self._targets is None:
            self.compile_module(module)
            return
        for part in module.modules():
            if self._targets.wants(part):
                self.compile_module(part)

    def _take_over_forward(self, kind: type[torch.nn.Module]) -> None:
        """The script calls forward() of such modules itself, past __call__: from now on that is a model call too."""
        forward = kind.forward
        compiled: weakref.WeakKeyDictionary[torch.nn.Module, Callable[..., Any]] = weakref.WeakKeyDictionary()

        @functools.wraps(forward)
        def taken_over(module: torch.nn.Module, *arguments: Any, **keywords: Any) -> Any:
            if torch.compiler.is_compiling() or not self._is_outermost():
                return forward(module, *arguments, **keywords)
            if module not in compiled:
                call = functools.partial(forward, module)
                wanted = self._targets is None or self._targets.wants(module)
                compiled[module] = self._compiled_call(module, call) if wanted and self._compile_models else call
            self._names.learn(module)
            self._call_begins(sys._getframe(1))
            with self._inside():
                result = self._names.run(module, compiled[module], arguments, keywords)
            self._model_call_ended(module)
            return result

        setattr(kind, "forward", taken_over)  # noqa: B010 - mypy knows it as a method

    def _watched(self, module: torch.nn.Module) -> bool:
        """Whether `module` is a model: losses, and transforms without any state, are not."""
        if threading.get_ident() != self._thread or not self._writer.owns_process or isinstance(module, _Loss):
            return False
        return any(True for tensors in (module.parameters(), module.buffers()) for _ in tensors)

    def _compiled_call(self, module: torch.nn.Module, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return `call`, which runs `module`, compiled as one root."""

        def root(*args: Any, **kwargs: Any) -> Any:
            return call(*args, **kwargs)

        # Dynamo skips torch's own frames, so a container such as Sequential needs a frame of ours around it. It also
        # keeps its cache by code object: each module needs its own, or they evict each other.
        name = type(module).__name__
        own = types.FunctionType(
            root.__code__.replace(co_name=name, co_qualname=name), globals(), name, None, root.__closure__
        )
        self._writer.write(Root(name, self._user_frame(sys._getframe(1)), _parameters(module.forward)))
        compiled: Callable[..., Any] = self._compile(own)
        return compiled

    def _user_frame(self, frame: types.FrameType | None) -> Frame | None:
        return innermost_user_frame(python_stack(frame), self._prefixes)

    def _record(self, frame: types.FrameType) -> None:
        self._writer.write(UserCompile(self._user_frame(frame)))

    def _make_module_compile(self) -> Callable[..., None]:
        @functools.wraps(torch.nn.Module.compile)
        def module_compile(module: torch.nn.Module, *arguments: Any, **keywords: Any) -> None:
            self._record(sys._getframe(1))
            if self._compile_models:
                self._note_recurrence(module, sys._getframe(1))
                # What nn.Module.compile does, without being recorded twice.
                module._compiled_call_impl = self._compile(module._call_impl, *arguments, **keywords)

        return module_compile

    def _make_compile(self) -> Callable[..., Any]:
        @functools.wraps(self._compile)
        def recorded_compile(model: Any = None, **keywords: Any) -> Any:
            self._record(sys._getframe(1))
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
            self._note_recurrence(model, sys._getframe(1))
            return compiled

        @functools.wraps(model)
        def entry(*arguments: Any, **given: Any) -> Any:
            if torch.compiler.is_compiling():
                return model(*arguments, **given)
            with self._inside():
                return compiled(*arguments, **given)

        return entry


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        # Written in C, and without a signature.
        return ()


def _forward_under_way(frame: types.FrameType | None) -> torch.nn.Module | None:
    """Return the outermost module whose forward() runs on this stack."""
    found = None
    while frame is not None:
        code = frame.f_code
        if code.co_name == "forward" and code.co_argcount:
            first = frame.f_locals.get(code.co_varnames[0])
            found = first if isinstance(first, torch.nn.Module) else found
        frame = frame.f_back
    return found
