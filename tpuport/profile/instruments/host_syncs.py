"""Where the script makes the host wait for the device: a tensor's value read, printed or copied to the CPU.

Every such wait ends in one function of the device's plugin, which copies a buffer to the host on the thread that waits.
That is watched, so that none is missed, whatever asks for it: an index, a mask, torch.equal, torch.save. Methods of
tensors that read are watched too, as they alone say what the script wrote, and how long all of it took.
"""

import ast
import functools
import linecache
import sys
import threading
import types
from collections import defaultdict
from collections.abc import Callable
from itertools import islice
from time import perf_counter
from typing import Any

import torch

from tpuport.profile.frames import innermost_user_frame, is_own_file, is_runtime_file, package_path
from tpuport.profile.instruments.compilation import python_stack
from tpuport.profile.pjrt import Address, Function, PluginTable
from tpuport.profile.records import INDEXING, Frame, HostSync, RecordWriter

_READS = {
    "item": ".item()",
    "tolist": ".tolist()",
    "__bool__": "bool()",
    "__int__": "int()",
    "__float__": "float()",
    "__complex__": "complex()",
    "__index__": "use as an index",
    "__contains__": "in",
    "__repr__": "print",
    "__format__": "print",
    "cpu": ".cpu()",
    "to": ".to() the CPU",
    "copy_": ".copy_() to the CPU",
    "nonzero": ".nonzero()",
    "argwhere": ".argwhere()",
    "masked_select": ".masked_select()",
    "equal": ".equal()",
    "allclose": ".allclose()",
}
"""Methods of a tensor that read values, if they do, and what they are to the reader of a report.

Not `__getitem__`: a class that defines it in Python is a sequence to C, and torch.tensor treats it so.
"""
_OTHER = "read of a value"


_RUNS_BACKWARD = "_engine_run_backward"
"""The function of torch.autograd that waits for a backward pass."""
_UNTRACED = ("torch/_dynamo/", "torch/_compile.py")
"""Files of the frames that torch.compiler.disable puts around a function."""


class HostSyncs:
    """Watches while it is on: in the counted steps only, so that no timed step pays for it."""

    def __init__(self, writer: RecordWriter, prefixes: tuple[str, ...], table: PluginTable | None) -> None:
        """Without the table of a plugin it is never to be started."""
        self._writer = writer
        self._prefixes = prefixes
        self._table = table
        self._thread = threading.get_ident()
        self._originals: dict[str, Any] = {}
        self._stop_watching: Callable[[], None] | None = None
        self._inside = False
        self._transfers = 0
        self._found: defaultdict[tuple[str, Frame | None, Frame | None], list[float | None]] = defaultdict(list)

    def start(self) -> None:
        """Watch from now on."""
        self._found.clear()
        for name, what in _READS.items():
            original = getattr(torch.Tensor, name)
            # An attribute that the class itself has is put back; an inherited one is uncovered again.
            self._originals[name] = torch.Tensor.__dict__.get(name)
            setattr(torch.Tensor, name, self._watched(original, what))
        if self._table is not None:
            self._stop_watching = self._table.replace("PJRT_Buffer_ToHostBuffer", self._watch_transfer)

    def stop(self, step: int) -> None:
        """Put everything back, and write what was seen."""
        if self._stop_watching is not None:
            self._stop_watching()
            self._stop_watching = None
        for name, original in self._originals.items():
            if original is None:
                delattr(torch.Tensor, name)
            else:
                setattr(torch.Tensor, name, original)
        self._originals.clear()
        for (what, frame, inner), times in self._found.items():
            known = [seconds for seconds in times if seconds is not None]
            self._writer.write(HostSync(step, what, frame, len(times), sum(known) if known else None, inner))

    def _watched(self, original: Callable[..., Any], what: str) -> Callable[..., Any]:
        @functools.wraps(original)
        def watched(tensor: torch.Tensor, *arguments: Any, **keywords: Any) -> Any:
            if self._inside or torch.compiler.is_compiling() or not self._is_mine():
                return original(tensor, *arguments, **keywords)
            self._inside = True
            self._transfers = 0
            start = perf_counter()
            try:
                result = original(tensor, *arguments, **keywords)
            finally:
                self._inside = False
            if self._transfers:
                self._note(sys._getframe(1), what, perf_counter() - start)
            return result

        # Between the graphs of a broken frame Dynamo would compile this function too.
        hidden: Callable[..., Any] = torch.compiler.disable(watched)
        return hidden

    def _watch_transfer(self, original: Function) -> Function:
        def to_host(address: Address) -> Address | None:
            if self._inside and self._is_mine():
                self._transfers += 1
            elif (frame := self._who_waits(sys._getframe().f_back)) is not None:
                self._note(frame, "", None)
            return original(address)

        return to_host

    def _who_waits(self, frame: types.FrameType | None) -> types.FrameType | None:
        """Return where the script waits for a copy that begins at `frame`: None where it goes on meanwhile.

        While it waits for a backward pass, autograd's thread works for it, mostly below no frame of Python.
        """
        if not self._writer.owns_process or threading.get_ident() == self._thread:
            return frame if self._writer.owns_process else None
        script = sys._current_frames().get(self._thread)
        waits = script is not None and script.f_code.co_name == _RUNS_BACKWARD
        return (frame or script) if waits else None

    def _is_mine(self) -> bool:
        return threading.get_ident() == self._thread and self._writer.owns_process

    def _note(self, frame: types.FrameType | None, what: str, seconds: float | None) -> None:
        """Keep a wait that began at `frame`; what no method says is called what is written in the source."""
        stood_in = False
        while frame is not None and ((own := is_own_file(frame.f_code.co_filename)) or _is_untraced(frame)):
            stood_in = stood_in or own
            frame = frame.f_back
        if stood_in:
            # The emulation reads for what the script called.
            what, seconds = "", None
        if not what:
            while frame is not None and is_runtime_file(frame.f_code.co_filename):
                frame = frame.f_back
            what = _written(frame) if frame is not None else _OTHER
        stack = python_stack(frame)
        inner = stack[-1] if stack and package_path(stack[-1].file) else None
        self._found[what, innermost_user_frame(stack, self._prefixes), inner].append(seconds)


def _is_untraced(frame: types.FrameType) -> bool:
    return package_path(frame.f_code.co_filename).startswith(_UNTRACED)


def _written(frame: types.FrameType) -> str:
    """Return what a frame calls just now, as its source has it: a function, a method or an index."""
    match _expression(frame):
        case ast.Call(func=ast.Name(id=name)):
            return f"{name}()"
        case ast.Call(func=ast.Attribute(attr=name) as function):
            root = ast.unparse(function).partition(".")[0]
            is_function = isinstance(frame.f_globals.get(root), types.ModuleType)
            return f"{ast.unparse(function)}()" if is_function else f".{name}()"
        case ast.Subscript():
            return INDEXING
    return _OTHER


def _expression(frame: types.FrameType) -> ast.expr | None:
    instruction = frame.f_lasti // 2
    first, last, start, end = next(islice(frame.f_code.co_positions(), instruction, None), (None,) * 4)
    if first is None or last is None or start is None or end is None:
        return None
    # Columns count bytes.
    lines = [linecache.getline(frame.f_code.co_filename, number).encode() for number in range(first, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    try:
        return ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
    except SyntaxError:
        return None
