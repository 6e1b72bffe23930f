"""A child's output streams on disk, with a limit: the head and the tail are kept, the middle is dropped and counted."""

import os
import threading
from collections import deque
from pathlib import Path
from typing import IO

HEAD_BYTES = 512 * 1024
TAIL_BYTES = 512 * 1024
_CHUNK = 64 * 1024


class LogDrain:
    """Reads a pipe to its end in a thread, so that the writer never stalls, and keeps at most head and tail."""

    def __init__(self, pipe: IO[bytes], path: Path) -> None:
        self._pipe = pipe
        self._path = path
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        tail: deque[bytes] = deque()
        kept = dropped = head = 0
        with self._path.open("wb") as file:
            while chunk := os.read(self._pipe.fileno(), _CHUNK):
                if head < HEAD_BYTES:
                    file.write(chunk)
                    file.flush()
                    head += len(chunk)
                    continue
                tail.append(chunk)
                kept += len(chunk)
                while kept - len(tail[0]) >= TAIL_BYTES:
                    kept -= len(tail[0])
                    dropped += len(tail.popleft())
            if dropped:
                file.write(f"\n[tpuport: {dropped} bytes dropped here]\n".encode())
            file.writelines(tail)

    def finish(self, timeout_s: float) -> None:
        """Wait until the pipe is closed by every process that holds it, `timeout_s` seconds at most."""
        self._thread.join(timeout_s)
        if not self._thread.is_alive():
            self._pipe.close()
