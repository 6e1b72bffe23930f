"""Usage errors: nothing runs, nothing is written."""

from pathlib import Path

import pytest

from tests.profile.command import SCRIPTS, make_session, tpuport
from tpuport.profile.plan import Mode
from tpuport.profile.records import Ended, Started

TRAIN = str(SCRIPTS / "train.py")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.py",), "missing.py can't be read: No such file or directory"),
        ((".",), ". is a directory"),
        (("train.ipynb",), "train.ipynb can't be read: No such file"),
        (("binary.py",), "it holds binary data"),
        ((TRAIN, "--steps", "0"), "0 is not in the range x>=1"),
        ((TRAIN, "--warmup", "0"), "0 is not in the range x>=1"),
        ((TRAIN, "--timeout", "0"), "0.0 is not in the range x>=1"),
        ((TRAIN, "--mode", "quick"), "'quick' is not one of"),
        ((TRAIN, "--device", "tpu"), "no TPU is attached"),
        ((TRAIN, "--device", "cpu", "--mode", "fused"), "mode fused exists on a TPU only"),
        ((TRAIN, "--output", "occupied"), "is not empty"),
        ((TRAIN, "--output", "binary.py"), "can't be written"),
        ((TRAIN, "--output", "binary.py/below"), "can't be written"),
        ((), "nothing to profile was named"),
    ],
)
def test_wrong_usage_is_refused(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "binary.py").write_bytes(b"\x7fELF\0\0")
    (tmp_path / "occupied").mkdir()
    (tmp_path / "occupied" / "file").touch()
    result = tpuport("profile", *arguments, cwd=tmp_path)
    assert result.code == 2
    assert message in " ".join(result.err.split())
    assert result.out == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["binary.py", "occupied"]


def test_report_shows_a_saved_session(tmp_path: Path) -> None:
    make_session(tmp_path / "s", {Mode.EAGER: [Started("2.13.0", "tpu", ()), Ended("finished")]})
    result = tpuport("report", "s", cwd=tmp_path)
    assert result.code == 0
    assert "eager failed: the script ended without a step" in result.out


@pytest.mark.parametrize(
    ("session", "message"), [("missing", "missing does not exist"), (".", "is not a tpuport session")]
)
def test_report_refuses_what_is_no_session(tmp_path: Path, session: str, message: str) -> None:
    result = tpuport("report", session, cwd=tmp_path)
    assert result.code == 2
    assert message in result.err


@pytest.mark.parametrize("command", ["profile", "report", "doctor"])
def test_help_names_the_exit_codes(tmp_path: Path, command: str) -> None:
    result = tpuport(command, "--help", cwd=tmp_path)
    assert result.code == 0
    assert "Exit code" in result.out
