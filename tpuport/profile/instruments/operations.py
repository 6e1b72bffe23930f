"""Every torch operation of one eager step: the module and the line it belongs to, and the programs that it starts."""

import sys
import threading
import types
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

from tpuport.profile.frames import is_model_file
from tpuport.profile.instruments.on_cpu import OnCpu
from tpuport.profile.instruments.programs import Programs
from tpuport.profile.modules import MODULE_FILE
from tpuport.profile.phases import BACKWARD_FILE, StepPhase, phase_of
from tpuport.profile.records import CpuOperation, CpuReason, Frame, Operation, RecordWriter

_Origin = tuple[str, Frame | None]
"""Name of the module, and the line of model code."""
_NOWHERE: _Origin = ("", None)
_Key = tuple[str, _Origin, StepPhase, tuple[tuple[int, int], ...]]


class Operations(TorchDispatchMode):  # type: ignore[misc]
    """Watches one step: waits for every operation, and counts what was executed until then.

    Only where each operation runs by itself: fused ones are deferred, and Dynamo does not trace below a dispatch mode.
    The operations of a backward pass, which autograd runs on threads without any Python, belong where those do that
    they are the gradient of. A dispatch mode changes what autograd executes a little (it adds gradients up out of
    place), and there are operations that it does not see: what they start belongs to none.
    """

    def __init__(
        self, programs: Programs, writer: RecordWriter, prefixes: tuple[str, ...], ended: Callable[[], None]
    ) -> None:
        """`ended` is called when no more names of modules are needed on the stack."""
        super().__init__()
        self._ended = ended
        self._programs = programs
        self._writer = writer
        self._prefixes = prefixes
        self._thread = threading.get_ident()
        self._origins: dict[int, _Origin] = {}
        self._last_node = 0
        self._is_model_code: dict[types.CodeType, bool] = {}
        self._found: Counter[_Key] = Counter()
        self._on_cpu = OnCpu()
        self._cpu_found: Counter[tuple[str, CpuReason, _Origin]] = Counter()
        self._watching = False

    def start(self) -> None:
        """Watch from now on."""
        self._last_node = torch.autograd._get_sequence_nr()
        self._programs.start_counting()
        self._watching = True
        self.__enter__()

    def stop(self) -> None:
        """End for good, and write what was seen."""
        self._watching = False
        # Below a mode of the script's own that is still open it stays, and only passes operations on.
        if _get_current_dispatch_mode() is self:
            self.__exit__(None, None, None)
        self._programs.stop_counting()
        self._ended()
        for (name, (module, frame), phase, programs), count in self._found.items():
            self._writer.write(Operation(name, module, frame, phase, count, dict(programs)))
        for (name, reason, (module, frame)), count in self._cpu_found.items():
            self._writer.write(CpuOperation(name, reason, module, frame, count))
        self._found.clear()
        self._cpu_found.clear()
        self._origins.clear()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation."""
        # A DataLoader's worker that is forked in this step has the mode too, and may not touch the device.
        if not self._watching or not self._writer.owns_process:
            return func(*args, **(kwargs or {}))
        stack = _frames(sys._getframe(1))
        node = torch._C._current_autograd_node()
        module, line = self._origin(stack)
        if node is not None:
            gradient_of = self._origins.get(node._sequence_nr(), _NOWHERE)
            # A Function of the script's own has lines of its own in its backward.
            module, line = module or gradient_of[0], line or gradient_of[1]
        elif threading.get_ident() == self._thread:
            self._remember((module, line))
        torch.accelerator.synchronize()
        self._programs.take()
        result = func(*args, **(kwargs or {}))
        torch.accelerator.synchronize()
        programs = self._programs.take()
        name = func.overloadpacket._qualified_op_name.partition("::")[2]
        if programs:
            self._found[name, (module, line), _phase(stack, node), tuple(programs.items())] += 1
        if reason := self._on_cpu.reason(func, (args, kwargs or {}), result, bool(module)):
            self._cpu_found[name, reason, (module, line)] += 1
        return result

    def _origin(self, stack: list[types.FrameType]) -> _Origin:
        """Return the innermost module and the innermost line of model code on a stack, innermost frame first."""
        module, line = "", None
        for frame in stack:
            code = frame.f_code
            if not module and code.co_filename == MODULE_FILE:
                module = code.co_name
            elif line is None and self._is_model(code):
                line = Frame(code.co_filename, frame.f_lineno, code.co_name)
        return module, line

    def _is_model(self, code: types.CodeType) -> bool:
        known = self._is_model_code.get(code)
        if known is None:
            # Of a lambda the line is that of its call, as torch_tpu leaves frames named `<…>` out of its programs.
            is_named = not code.co_name.startswith("<")
            known = self._is_model_code[code] = is_named and is_model_file(code.co_filename, self._prefixes)
        return known

    def _remember(self, origin: _Origin) -> None:
        """Autograd makes an operation's node, numbered on end, before the operation runs."""
        now = torch.autograd._get_sequence_nr()
        self._origins.update(dict.fromkeys(range(self._last_node, now), origin))
        self._last_node = now


def _frames(frame: types.FrameType | None) -> list[types.FrameType]:
    """Return the stack that ends at `frame`, innermost first."""
    frames: list[types.FrameType] = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def _phase(stack: list[types.FrameType], node: object) -> StepPhase:
    names = [(frame.f_code.co_filename, frame.f_code.co_name) for frame in reversed(stack)]
    return phase_of(names if node is None else [(BACKWARD_FILE, "backward"), *names])
