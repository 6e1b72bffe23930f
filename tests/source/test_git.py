import os
import subprocess
from pathlib import Path

import pytest

from tpuport.errors import TpuportError
from tpuport.source import git


def run(directory: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *arguments], cwd=directory, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    run(tmp_path, "init")
    for name in ("clean.py", "staged.py", "edited.py", "sp ace.py", "moved.py"):
        (tmp_path / name).write_text(f"# {name}\n" * 5)
    (tmp_path / ".gitignore").write_text("ignored.py\n")
    run(tmp_path, "add", ".")
    run(tmp_path, "commit", "-m", "x")
    return tmp_path


def test_each_kind_of_change_is_told_apart(repository: Path) -> None:
    (repository / "staged.py").write_text("new\n")
    run(repository, "add", "staged.py")
    (repository / "edited.py").write_text("new\n")
    (repository / "sp ace.py").write_text("new\n")
    run(repository, "mv", "moved.py", "target.py")
    for name in ("untracked.py", "ignored.py"):
        (repository / name).write_text("x\n")
    files = [repository / name for name in sorted(os.listdir(repository)) if name.endswith(".py")]
    standing = git.standing(files)
    assert {path.name for path in standing.modified} == {"staged.py", "edited.py", "sp ace.py", "target.py"}
    assert {path.name for path in standing.untracked} == {"untracked.py", "ignored.py"}
    assert not standing.outside


def test_only_the_files_asked_about_count(repository: Path) -> None:
    (repository / "edited.py").write_text("new\n")
    assert git.standing([repository / "clean.py"]) == git.Standing()


def test_a_repository_without_commits_has_no_way_back(tmp_path: Path) -> None:
    run(tmp_path, "init")
    (tmp_path / "a.py").write_text("x")
    assert git.standing([tmp_path / "a.py"]).untracked
    run(tmp_path, "add", "a.py")
    assert git.standing([tmp_path / "a.py"]).modified


def test_files_outside_and_in_several_repositories(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "sub").mkdir(parents=True)
        run(tmp_path / name, "init")
        (tmp_path / name / "sub/a.py").write_text("x")
        run(tmp_path / name, "add", ".")
        run(tmp_path / name, "commit", "-m", "x")
    (tmp_path / "two/sub/a.py").write_text("y")
    (tmp_path / "b.py").write_text("x")
    standing = git.standing([tmp_path / "one/sub/a.py", tmp_path / "two/sub/a.py", tmp_path / "b.py"])
    assert standing == git.Standing(modified=(tmp_path / "two/sub/a.py",), outside=(tmp_path / "b.py",))


def test_a_hooks_environment_does_not_mislead(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path_factory.mktemp("other")
    run(other, "init")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
    assert git.standing([repository / "clean.py"]) == git.Standing()


def test_a_linked_file_is_judged_by_its_target(repository: Path) -> None:
    (repository / "edited.py").write_text("new\n")
    (repository / "link.py").symlink_to("edited.py")
    assert git.standing([repository / "link.py"]).modified == (repository / "link.py",)


def test_no_program_of_the_repository_is_started(repository: Path) -> None:
    monitor = repository / "monitor"
    monitor.write_text(f"#!/bin/sh\ntouch {repository}/started\n")
    monitor.chmod(0o755)
    run(repository, "config", "core.fsmonitor", str(monitor))
    git.standing([repository / "clean.py"])
    assert not (repository / "started").exists()


def test_without_git_every_file_is_outside(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository))
    assert git.standing([repository / "clean.py"]) == git.Standing(outside=(repository / "clean.py",), git_missing=True)


def test_a_broken_repository_is_an_error(repository: Path) -> None:
    (repository / ".git/index").write_bytes(b"nonsense")
    with pytest.raises(TpuportError, match=r"git ls-files failed in"):
        git.standing([repository / "clean.py"])
