import os
from pathlib import Path

from tpuport.profile.logs import HEAD_BYTES, TAIL_BYTES, LogDrain


def drained(path: Path, chunks: list[bytes]) -> bytes:
    reading, writing = os.pipe()
    drain = LogDrain(os.fdopen(reading, "rb"), path)
    with os.fdopen(writing, "wb") as file:
        for chunk in chunks:
            file.write(chunk)
    drain.finish(10)
    return path.read_bytes()


def test_small_output_is_kept_whole(tmp_path: Path) -> None:
    assert drained(tmp_path / "log", [b"one\n", b"two\n"]) == b"one\ntwo\n"


def test_of_large_output_head_and_tail_are_kept(tmp_path: Path) -> None:
    content = drained(tmp_path / "log", [b"first line\n", b"x" * (8 * HEAD_BYTES), b"\nlast line\n"])
    assert content.startswith(b"first line\n")
    assert content.endswith(b"\nlast line\n")
    assert b"bytes dropped here]" in content
    assert len(content) < HEAD_BYTES + TAIL_BYTES + 4 * 65536
