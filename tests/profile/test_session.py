from pathlib import Path

import pytest

from tests.profile.command import make_session, rewrite_header
from tpuport.errors import TpuportError
from tpuport.profile.layout import CRASH_LOG, SESSION
from tpuport.profile.plan import Mode
from tpuport.profile.records import Frame, Note
from tpuport.profile.session import load

NOTE = Note("a", "b")
CRASH = """Fatal Python error: Aborted

Thread 0x01 (most recent call first):
  <no Python frame>

Current thread 0x02 (most recent call first):
  File "/lib/compile.py", line 7 in work

Thread 0x03 (most recent call first):
  File "/project/model.py", line 5 in forward
  File "/project/train.py", line 9 in <module>

Extension modules: numpy (total: 1)
"""


def test_a_session_is_loaded_as_it_was_saved(tmp_path: Path) -> None:
    session = load(make_session(tmp_path / "s", {Mode.EAGER: [NOTE], Mode.COMPILED: []}))
    assert [run.mode for run in session.runs] == [Mode.EAGER, Mode.COMPILED]
    assert session.runs[0].records.items == (NOTE,)
    assert session.plan.script == "/project/train.py"


def test_the_stacks_of_a_crash_start_with_the_thread_that_crashed(tmp_path: Path) -> None:
    folder = make_session(tmp_path / "s", {Mode.EAGER: []})
    (folder / "eager" / CRASH_LOG).write_text(CRASH)
    assert load(folder).runs[0].crash_stacks == (
        (Frame("/lib/compile.py", 7, "work"),),
        (Frame("/project/train.py", 9, "<module>"), Frame("/project/model.py", 5, "forward")),
    )


def test_a_folder_without_a_session_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TpuportError, match="not a tpuport session"):
        load(tmp_path)


@pytest.mark.parametrize("content", ["", "{", '"text"', "[]", "{}"])
def test_a_damaged_session_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / SESSION).write_text(content)
    with pytest.raises(TpuportError, match=str(tmp_path)):
        load(tmp_path)


@pytest.mark.parametrize(
    ("version", "hint"),
    [
        (99, "A newer tpuport wrote it: update this one, or profile again."),
        (0, "Render it with the tpuport that wrote it, or profile again."),
    ],
)
def test_a_session_of_another_version_is_refused(tmp_path: Path, version: int, hint: str) -> None:
    folder = make_session(tmp_path / "s", {})
    rewrite_header(folder, version=version)
    with pytest.raises(TpuportError, match=f"version {version}; this tpuport reads version 1") as raised:
        load(folder)
    assert raised.value.hint == hint


def test_a_session_with_a_wrong_field_is_refused(tmp_path: Path) -> None:
    folder = make_session(tmp_path / "s", {})
    rewrite_header(folder, runs=[{"mode": "sideways"}])
    with pytest.raises(TpuportError, match="'sideways' is none of eager, fused"):
        load(folder)
