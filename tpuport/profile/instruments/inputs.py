"""How long the script waits for its next batch.

What a DataLoader takes is told by itself. Batches that come from elsewhere, an iterator or a function of the script's
own, are part of the time until the model is called: at the beginning of a step the device is idle, so that time is the
host's alone.
"""

import functools
import sys
import threading
import types
from collections import defaultdict
from time import perf_counter
from typing import Any

from torch.utils.data import dataloader

from tpuport.profile.frames import innermost_user_frame
from tpuport.profile.instruments.compilation import python_stack
from tpuport.profile.records import BeforeModel, Frame, InputWait, RecordWriter


class InputWaits:
    """Times every batch that a DataLoader gives, and the way to the first model call, in every step.

    That is two readings of the clock a batch, and two a step.
    """

    def __init__(self, writer: RecordWriter, prefixes: tuple[str, ...]) -> None:
        self._writer = writer
        self._prefixes = prefixes
        self._thread = threading.get_ident()
        self._found: defaultdict[Frame | None, list[float]] = defaultdict(list)
        self._began: float | None = None
        self._loading = 0.0
        self._before: tuple[Frame | None, float] | None = None

    def install(self) -> None:
        """Watch the iterators of all DataLoaders."""
        iterator: Any = dataloader._BaseDataLoaderIter
        next_ = iterator.__next__

        @functools.wraps(next_)
        def timed(self_: Any) -> Any:
            if threading.get_ident() != self._thread or not self._writer.owns_process:
                return next_(self_)
            start = perf_counter()
            batch = next_(self_)
            seconds = perf_counter() - start
            self._loading += seconds
            self._found[innermost_user_frame(python_stack(sys._getframe(1)), self._prefixes)].append(seconds)
            return batch

        iterator.__next__ = timed

    def step_begins(self) -> None:
        """Take the time until the next model call."""
        self._loading = 0.0
        self._began = perf_counter()

    def model_called(self, caller: types.FrameType) -> None:
        """An outermost call of a model begins, on the thread of the script."""
        if self._began is not None:
            seconds = perf_counter() - self._began - self._loading
            self._began = None
            self._before = innermost_user_frame(python_stack(caller), self._prefixes), seconds

    def step_ended(self, step: int) -> None:
        """Write what was seen since the last step."""
        for frame, seconds in self._found.items():
            self._writer.write(InputWait(step, frame, len(seconds), sum(seconds)))
        self._found.clear()
        if self._before is not None:
            self._writer.write(BeforeModel(step, *self._before))
            self._before = None
