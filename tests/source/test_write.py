import os
from pathlib import Path

import pytest

from tpuport.source import write


def test_bytes_mode_and_ends_survive(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"\xef\xbb\xbfa\r\nb")
    file.chmod(0o751)
    write.replace(file, "a\nb", "a\nc", tmp_path)
    assert file.read_bytes() == b"\xef\xbb\xbfa\r\nc"
    assert file.stat().st_mode & 0o7777 == 0o751
    assert os.listdir(tmp_path) == ["a.py"]


def test_owner_survives_where_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.py"
    file.write_text("a")
    given: list[tuple[int, int]] = []
    before = os.stat_result((*file.stat()[:4], 4711, 4712, *file.stat()[6:]))

    def chown(_path: str, uid: int, gid: int) -> None:
        given.append((uid, gid))
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chown", chown)
    monkeypatch.setattr(write, "_identity", lambda _: 0)
    write.atomic(file, b"b", before)
    assert given == [(4711, 4712)]
    assert file.read_bytes() == b"b"


@pytest.mark.parametrize("step", ["replace", "fsync", "chmod"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_stopped_anywhere_the_file_is_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    file = tmp_path / "a.py"
    file.write_text("old")

    def stop(*_: object) -> None:
        raise error

    monkeypatch.setattr(os, step, stop)
    expected = write.Refused if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected) as stopped:
        write.replace(file, "old", "new", tmp_path)
    if isinstance(error, OSError):
        assert "No space left" in str(stopped.value)
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.py"]


def test_a_file_that_changed_meanwhile_is_left(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("edited")
    with pytest.raises(write.Refused, match="changed on disk"):
        write.replace(file, "old", "new", tmp_path)
    assert file.read_text() == "edited"


def test_a_change_in_the_last_moment_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.py"
    file.write_text("old")
    fsync = os.fsync

    def edited_meanwhile(descriptor: int) -> None:
        fsync(descriptor)
        file.write_text("somebody else's")

    monkeypatch.setattr(os, "fsync", edited_meanwhile)
    with pytest.raises(write.Refused, match="changed on disk"):
        write.replace(file, "old", "new", tmp_path)
    assert file.read_text() == "somebody else's"


def test_a_file_that_went_away_is_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(write.Refused, match="No such file"):
        write.replace(tmp_path / "a.py", "old", "new", tmp_path)
    assert not os.listdir(tmp_path)


def test_a_directory_in_the_files_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.py").mkdir()
    with pytest.raises(write.Refused):
        write.replace(tmp_path / "a.py", "old", "new", tmp_path)


def test_no_write_permission_is_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.py"
    file.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(write.Refused, match="no write permission"):
        write.replace(file, "old", "new", tmp_path)
    assert file.read_text() == "old"


def test_a_character_without_room_in_the_encoding_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"# coding: latin-1\n")
    with pytest.raises(write.Refused, match="cannot be encoded as iso-8859-1"):
        write.replace(file, "# coding: latin-1\n", "# coding: latin-1\n# \N{SNOWMAN}\n", tmp_path)


def test_a_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "real.py").write_text("old")
    (tmp_path / "link.py").symlink_to("real.py")
    write.replace(tmp_path / "link.py", "old", "new", tmp_path)
    assert (tmp_path / "link.py").is_symlink()
    assert (tmp_path / "real.py").read_text() == "new"


def test_a_link_out_of_the_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "real.py").write_text("old")
    (tmp_path / "root/link.py").symlink_to("../real.py")
    with pytest.raises(write.Refused, match="leads out of"):
        write.replace(tmp_path / "root/link.py", "old", "new", tmp_path / "root")
    assert (tmp_path / "real.py").read_text() == "old"


def test_a_new_file_gets_the_usual_mode(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    write.atomic(tmp_path / "new", b"x")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode
