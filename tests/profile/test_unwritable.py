"""Folders, disks and outputs that take no more, and sessions that can't be read: a clear error with exit code 2."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.profile.command import environment, make_plan, make_session, tpuport
from tests.profile.test_output import session
from tpuport.errors import TpuportError
from tpuport.profile import engine
from tpuport.profile.plan import Mode
from tpuport.profile.records import FILE_NAME
from tpuport.profile.runner import ExitKind, ProcessExit

ENDED = (ProcessExit(ExitKind.EXITED, 0, 1.0),)


@pytest.mark.parametrize("chosen", ["text", "json", "markdown", "html"])
def test_an_output_on_a_full_disk_is_told(tmp_path: Path, chosen: str) -> None:
    session(tmp_path, "emulated")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tpuport", "report", "s", "--format", chosen],
            cwd=tmp_path, env=environment(), stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "error: the output can't be written: No space left on device",
        "hint: free some space, or write elsewhere",
    ]


def test_an_output_that_knows_ascii_only_is_written_all_the_same(tmp_path: Path) -> None:
    session(tmp_path, "emulated")
    done = subprocess.run(
        [sys.executable, "-m", "tpuport", "report", "s"],
        cwd=tmp_path, env={**environment(), "PYTHONIOENCODING": "ascii"}, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"12 \\u2192 3 executions a step" in done.stdout


def fails(error: int, after: int) -> Any:
    """A function that can be called `after` times, and then fails as the operating system would."""
    calls = 0

    def write(*_arguments: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > after:
            raise OSError(error, os.strerror(error))

    return write


@pytest.mark.parametrize(
    ("error", "after", "message", "hint"),
    [
        (errno.ENOSPC, 0, "can't be written: No space left on device", "Free some space there"),
        (errno.EROFS, 0, "can't be written: Read-only file system", "Choose another with --output."),
        (errno.EACCES, 0, "can't be written: Permission denied", "Choose another with --output."),
        (errno.ENOSPC, 1, r"is lost: after the script ran \(eager\), No space left on device", "Free some space there"),
        (
            errno.ENOENT,
            1,
            r"is lost: after the script ran \(eager\), No such file",
            "Does the script clear that folder?",
        ),
    ],
)
def test_a_session_that_cannot_be_saved_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, after: int, message: str, hint: str
) -> None:
    monkeypatch.setattr(engine, "save", fails(error, after))
    monkeypatch.setattr(engine, "run_mode", lambda *_: ENDED)
    with pytest.raises(TpuportError, match=message) as raised:
        engine.run_session(make_plan(modes=(Mode.EAGER,)), tmp_path, lambda *_: None)
    assert raised.value.hint.startswith(hint)
    assert raised.value.exit_code == 2


def test_a_session_with_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    folder = make_session(tmp_path / "s", {Mode.EAGER: []})
    (folder / "eager" / FILE_NAME).unlink()
    (folder / "eager" / FILE_NAME).mkdir()
    result = tpuport("report", "s", cwd=tmp_path)
    assert result.code == 2
    assert f"error: s/eager/{FILE_NAME} cannot be read: Is a directory" in result.err
