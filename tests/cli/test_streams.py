import io
import itertools
import sys
from pathlib import Path

import pytest

from tpuport.cli import streams
from tpuport.model import Outcome, Status

OUTCOMES = [Outcome(Path(f"{number}.py"), Status.UNCHANGED) for number in range(4)]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_long_run_is_counted_on_a_terminal_and_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(0, 2)
    monkeypatch.setattr(streams.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    assert list(streams.with_progress(iter(OUTCOMES), 4)) == OUTCOMES
    assert terminal.getvalue().startswith("\r1 of 4 files\r2 of 4 files")
    assert terminal.getvalue().endswith("\r" + " " * len("4 of 4 files") + "\r")


def test_a_short_run_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    assert list(streams.with_progress(iter(OUTCOMES), 4)) == OUTCOMES
    assert terminal.getvalue() == ""


def test_without_a_terminal_nothing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(0, 2)
    monkeypatch.setattr(streams.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    assert list(streams.with_progress(iter(OUTCOMES), 4)) == OUTCOMES
    assert stream.getvalue() == ""
