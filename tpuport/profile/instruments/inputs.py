"""How long the script waits for its next batch."""

import functools
import sys
import threading
from collections import defaultdict
from time import perf_counter
from typing import Any

from torch.utils.data import dataloader

from tpuport.profile.frames import innermost_user_frame
from tpuport.profile.instruments.compilation import python_stack
from tpuport.profile.records import Frame, InputWait, RecordWriter


class InputWaits:
    """Times every batch that a DataLoader gives, in every step: two readings of the clock a batch."""

    def __init__(self, writer: RecordWriter, prefixes: tuple[str, ...]) -> None:
        self._writer = writer
        self._prefixes = prefixes
        self._thread = threading.get_ident()
        self._found: defaultdict[Frame | None, list[float]] = defaultdict(list)

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
            self._found[innermost_user_frame(python_stack(sys._getframe(1)), self._prefixes)].append(seconds)
            return batch

        iterator.__next__ = timed

    def step_ended(self, step: int) -> None:
        """Write what was seen since the last step."""
        for frame, seconds in self._found.items():
            self._writer.write(InputWait(step, frame, len(seconds), sum(seconds)))
        self._found.clear()
