"""Where the script makes the host wait for the device: a tensor's value read, printed or copied to the CPU."""

import functools
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch

from tpuport.profile.frames import innermost_user_frame, package_path
from tpuport.profile.instruments.compilation import python_stack
from tpuport.profile.records import Frame, HostSync, RecordWriter

_READS = {
    "item": ".item()",
    "tolist": ".tolist()",
    "__bool__": "bool()",
    "__int__": "int()",
    "__float__": "float()",
    "__index__": "use as an index",
    "__repr__": "print",
    "__format__": "print",
}
"""Methods of a tensor that read its value, and what they are to the reader of a report."""
_COPIES = {"cpu": ".cpu()", "to": ".to() the CPU", "copy_": ".copy_() to the CPU"}
"""Methods that may copy from the device to the host."""


_UNTRACED = ("torch/_dynamo/", "torch/_compile.py")
"""Files of the frames that torch.compiler.disable puts around a function."""


class HostSyncs:
    """Replaces the methods concerned while it is on: in the counted steps only, so that no timed step pays for it."""

    def __init__(self, writer: RecordWriter, prefixes: tuple[str, ...]) -> None:
        self._writer = writer
        self._prefixes = prefixes
        self._thread = threading.get_ident()
        self._originals: dict[str, Any] = {}
        self._inside = False
        self._found: defaultdict[tuple[str, Frame | None, Frame | None], list[float]] = defaultdict(list)

    def start(self) -> None:
        """Watch from now on."""
        self._found.clear()
        for names, leaves in ((_READS, _on_device), (_COPIES, _left_device)):
            for name, what in names.items():
                original = getattr(torch.Tensor, name)
                # An attribute that the class itself has is put back; an inherited one is uncovered again.
                self._originals[name] = torch.Tensor.__dict__.get(name)
                setattr(torch.Tensor, name, self._watched(original, what, leaves))

    def stop(self, step: int) -> None:
        """Put the methods back, and write what was seen."""
        for name, original in self._originals.items():
            if original is None:
                delattr(torch.Tensor, name)
            else:
                setattr(torch.Tensor, name, original)
        self._originals.clear()
        for (what, frame, inner), seconds in self._found.items():
            self._writer.write(HostSync(step, what, frame, len(seconds), sum(seconds), inner))

    def _watched(self, original: Callable[..., Any], what: str, leaves: Callable[..., bool]) -> Callable[..., Any]:
        @functools.wraps(original)
        def watched(tensor: torch.Tensor, *arguments: Any, **keywords: Any) -> Any:
            if self._inside or torch.compiler.is_compiling() or threading.get_ident() != self._thread:
                return original(tensor, *arguments, **keywords)
            self._inside = True
            start = perf_counter()
            try:
                result = original(tensor, *arguments, **keywords)
            finally:
                self._inside = False
            if leaves(tensor, result, arguments):
                seconds = perf_counter() - start
                stack = python_stack(sys._getframe(1))
                while package_path(stack[-1].file).startswith(_UNTRACED):
                    stack.pop()
                inner = stack[-1] if package_path(stack[-1].file) else None
                self._found[what, innermost_user_frame(stack, self._prefixes), inner].append(seconds)
            return result

        # Between the graphs of a broken frame Dynamo would compile this function too.
        hidden: Callable[..., Any] = torch.compiler.disable(watched)
        return hidden


def _on_device(tensor: torch.Tensor, _result: Any, _arguments: tuple[Any, ...]) -> bool:
    return tensor.device.type not in ("cpu", "meta")


def _left_device(tensor: torch.Tensor, result: Any, arguments: tuple[Any, ...]) -> bool:
    source = arguments[0] if tensor is result and arguments and isinstance(arguments[0], torch.Tensor) else tensor
    return _on_device(source, result, arguments) and result.device.type == "cpu"
