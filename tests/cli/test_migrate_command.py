import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from small_core import Command, commit, git

from tpuport import annotate, engine
from tpuport.model import Finding
from tpuport.source import write

MIGRATED = "device = 'x'\nimport torch\nx = y.to(device)\ntorch.cuda.nope\nz = x.half()\n"
SUMMARY = """\
Left for you:
train.py:4:1: TPU201 no-such-thing message: nothing stands in for it
train.py:5:6: TPU102 half-call message [unsafe]

code    rule           rewritten  left
TPU101  cuda-call              1      \n\
TPU102  half-call                    1
TPU201  no-such-thing                1

1 site left alone: it works as it stands on a TPU.
1 of 3 files changed: 1 site rewritten, 2 left.
"""


def tree(directory: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(directory)): file.read_bytes()
        for file in sorted(directory.rglob("*"))
        if file.is_file() and ".git" not in file.parts
    }


def test_files_change_in_place_and_the_summary_says_what(tpuport: Command, project: Path) -> None:
    done = tpuport("migrate", ".")
    assert (done.code, done.err) == (0, "")
    assert [line.rstrip() for line in done.out.splitlines()] == [line.rstrip() for line in SUMMARY.splitlines()]
    assert (project / "train.py").read_text() == MIGRATED
    assert git(project, "status", "--porcelain") == " M train.py\n"


def test_a_second_run_changes_nothing(tpuport: Command, project: Path) -> None:
    tpuport("migrate", ".")
    before = tree(project)
    done = tpuport("migrate", ".")
    assert done.code == 0
    assert "0 of 3 files changed" in done.out
    assert tree(project) == before


def test_unsafe_fixes_need_their_flag(tpuport: Command, project: Path) -> None:
    tpuport("migrate", ".", "--unsafe")
    assert ".bfloat16()" in (project / "train.py").read_text()


@pytest.mark.usefixtures("project")
def test_strict_is_1_while_work_is_left(tpuport: Command) -> None:
    assert tpuport("migrate", ".", "--strict").code == 1
    assert tpuport("migrate", "info.py", "plain.py", "--strict").code == 0


@pytest.mark.usefixtures("project")
def test_json_is_all_there_is_on_stdout(tpuport: Command) -> None:
    content = json.loads(tpuport("migrate", ".", "--json").out)
    assert content["version"] == 1
    assert content["written"] is True
    assert content["changed"] == [{"file": "train.py", "rewritten": 1}]
    assert [(finding["code"], finding["line"]) for finding in content["rewritten"]] == [("TPU101", 2)]
    assert [(finding["code"], finding["line"]) for finding in content["findings"]] == [
        ("TPU301", 1),
        ("TPU201", 4),
        ("TPU102", 5),
    ]
    assert content["summary"] == {"files": 3, "changed": 1, "rewritten": 1, "left": 3}


def awkward(project: Path) -> None:
    """Files that a diff could get wrong."""
    contents = {
        "crlf.py": b"a = 1\r\nx.cuda()\r\nb = 2\r\n",
        "mixed.py": b"a = 1\r\nx.cuda()\nb = 2\r\n\r\n",
        "no_end.py": b"a = 1\nx.cuda()",
        "crlf_no_end.py": b"a = 1\r\nx.cuda()",
        "bom.py": b"\xef\xbb\xbfx.cuda()\n",
        "latin.py": b"# coding: latin-1\n# \xe9\nx.cuda() # \xe9\n",
        "lone_cr.py": b"a = 1\rx.cuda()\rb = 2\r",
        "form_feed.py": b"a = 1\n\x0c\nx.cuda()\n# \xe2\x80\xa8 \x1c\n",
        "sub/sp ace.py": b"x.cuda()\n",
        'sub/quo"te.py': b"x.cuda()\n",
        "sub/t\tab.py": b"x.cuda()\n",
        "sub/\xe9.py": b"x.cuda()\n",
    }
    for name, content in contents.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_bytes(content)
    commit(project)


@pytest.mark.parametrize(
    "tool", [["git", "apply", "--whitespace=nowarn", "-"], ["patch", "-p1", "--binary", "--quiet"]]
)
@pytest.mark.parametrize("where", [".", "sub"])
def test_the_diff_applied_is_the_migration(
    tpuport: Command, project: Path, monkeypatch: pytest.MonkeyPatch, tool: list[str], where: str
) -> None:
    awkward(project)
    before = tree(project)
    monkeypatch.chdir(project / where)
    done = tpuport("migrate", ".", "--diff", "--patch", project / ".git/x.patch")
    assert done.code == 0
    assert tree(project) == before
    assert "would change" in done.err
    subprocess.run(tool, check=True, input=(project / ".git/x.patch").read_bytes())
    applied = tree(project)
    assert applied != before
    git(project, "checkout", ".")
    tpuport("migrate", ".")
    assert tree(project) == applied


def test_the_diff_on_stdout_is_the_patch(project: Path, tpuport: Command) -> None:
    done = tpuport("migrate", "train.py", "--diff", "--patch", ".git/x.patch")
    assert done.out == (project / ".git/x.patch").read_text()
    assert done.out == (
        "--- a/train.py\n+++ b/train.py\n@@ -1,4 +1,5 @@\n+device = 'x'\n import torch\n-x = y.cuda()\n"
        "+x = y.to(device)\n torch.cuda.nope\n z = x.half()\n"
    )


def test_a_diff_from_elsewhere_is_relative_to_the_root(
    tpuport: Command, project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    done = tpuport("migrate", project / "train.py", "--diff")
    assert done.out.startswith("--- a/train.py\n")
    assert f"to be applied in {project}" in done.err


@pytest.mark.usefixtures("project")
def test_nothing_to_change_is_an_empty_diff(tpuport: Command) -> None:
    done = tpuport("migrate", "plain.py", "--diff")
    assert (done.code, done.out) == (0, "")


@pytest.mark.parametrize("option", ["--patch", "--report"])
@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("gone/x", "there is no directory"),
        ("plain.py/x", "there is no directory"),
        ("sub", "it is a directory"),
        ("locked/x", "no write permission"),
    ],
)
def test_a_file_that_cannot_be_saved_is_2_before_anything_is_written(
    tpuport: Command, project: Path, monkeypatch: pytest.MonkeyPatch, option: str, file: str, why: str
) -> None:
    (project / "sub").mkdir()
    (project / "locked").mkdir()
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "locked" and allowed(path, mode))
    before = tree(project)
    done = tpuport("migrate", ".", option, file)
    assert done.code == 2
    assert f"{option} {file}: cannot be written: {why}" in done.err
    assert tree(project) == before


@pytest.mark.usefixtures("project")
def test_a_full_disk_under_a_report_is_said(tpuport: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(write, "atomic", full)
    done = tpuport("migrate", "plain.py", "--report", "PORT.md")
    assert done.code == 2
    assert "error: --report PORT.md: cannot be written: No space left on device" in done.err


def test_a_comment_that_fails_costs_only_its_file(
    tpuport: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "a.py").write_text("x.cuda()\n")
    commit(project)
    comment = annotate.annotate

    def fails_for_a(source: str, left: Iterable[Finding]) -> str:
        assert source != "device = 'x'\nx.to(device)\n"
        return comment(source, left)

    monkeypatch.setattr(annotate, "annotate", fails_for_a)
    done = tpuport("migrate", ".", "--annotate")
    assert done.code == 2
    assert "a.py: failed: a bug in tpuport" in done.out
    assert (project / "a.py").read_text() == "x.cuda()\n"
    assert "# TODO(tpuport): TPU201" in (project / "train.py").read_text()


@pytest.mark.usefixtures("project")
def test_a_diff_has_no_other_format(tpuport: Command) -> None:
    assert tpuport("migrate", ".", "--diff", "--json").code == 2


@pytest.mark.parametrize("staged", [False, True])
def test_uncommitted_work_is_refused_before_anything_is_written(tpuport: Command, project: Path, staged: bool) -> None:
    (project / "a.py").write_text("x.cuda()\n")
    commit(project)
    (project / "train.py").write_text("x.cuda()  # mine\n")
    if staged:
        git(project, "add", "train.py")
    before = tree(project)
    done = tpuport("migrate", ".")
    assert done.code == 2
    assert "uncommitted changes" in done.err
    assert "train.py" in done.err
    assert "a.py" not in done.err
    assert "--allow-dirty" in done.err
    assert tree(project) == before
    assert tpuport("migrate", ".", "--allow-dirty").code == 0
    assert "to(device)  # mine" in (project / "train.py").read_text()


def test_files_git_does_not_know_are_refused(tpuport: Command, project: Path) -> None:
    (project / "new.py").write_text("x.cuda()\n")
    done = tpuport("migrate", ".")
    assert done.code == 2
    assert "files git does not track" in done.err
    assert (project / "train.py").read_text() != MIGRATED


def test_other_dirty_files_do_not_matter(tpuport: Command, project: Path) -> None:
    (project / "plain.py").write_text("import sys\n")
    (project / "notes.txt").write_text("x")
    assert tpuport("migrate", ".").code == 0
    assert (project / "train.py").read_text() == MIGRATED


def test_outside_of_git_it_writes_and_says_there_is_no_way_back(
    tpuport: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text("x.cuda()\n")
    done = tpuport("migrate", "a.py")
    assert done.code == 0
    assert "note: not in a git repository: there is no way back to the old text of a.py" in done.out
    assert "to(device)" in Path("a.py").read_text()


def test_a_file_that_cannot_be_written_fails_alone(
    tpuport: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "a.py").write_text("x.cuda()\n")
    commit(project)
    replace = os.replace

    def full(source: str, target: Path) -> None:
        if Path(target).name == "a.py":
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    done = tpuport("migrate", ".")
    assert done.code == 2
    assert "a.py: failed: cannot be written: No space left on device" in done.out
    assert (project / "a.py").read_text() == "x.cuda()\n"
    assert (project / "train.py").read_text() == MIGRATED
    assert "1 of 4 files changed" in done.out


def test_interrupted_every_file_is_old_or_new(tpuport: Command, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.py", "b.py", "c.py"):
        (project / name).write_text("x.cuda()\n")
    commit(project)
    whole = write.atomic

    def stop_at_b(target: Path, content: bytes, like: os.stat_result | None = None) -> None:
        if target.name == "b.py":
            raise KeyboardInterrupt
        whole(target, content, like)

    monkeypatch.setattr(write, "atomic", stop_at_b)
    done = tpuport("migrate", ".")
    assert done.code == 130
    assert "1 of 4 files written" in done.err
    assert (project / "a.py").read_text() == "device = 'x'\nx.to(device)\n"
    assert (project / "b.py").read_text() == "x.cuda()\n"


def test_interrupted_after_a_file_is_in_place_it_counts(
    tpuport: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "a.py").write_text("x.cuda()\n")
    commit(project)
    whole = write.atomic

    def stop_late(target: Path, content: bytes, like: os.stat_result | None = None) -> None:
        whole(target, content, like)
        raise KeyboardInterrupt

    monkeypatch.setattr(write, "atomic", stop_late)
    done = tpuport("migrate", ".")
    assert done.code == 130
    assert "1 of 2 files written" in done.err


def test_interrupted_before_anything_is_written_it_says_so(
    tpuport: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "a.py").write_text("x.cuda()\n")
    commit(project)

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "run", stop)
    done = tpuport("migrate", ".")
    assert done.code == 130
    assert "error: interrupted\nhint: every file is as it was" in done.err
    assert (project / "a.py").read_text() == "x.cuda()\n"


def test_a_patch_with_nothing_in_it_says_so(tpuport: Command, project: Path) -> None:
    for file in project.glob("*.py"):
        file.write_text("x = 1\n")
    done = tpuport("migrate", "--patch", "port.patch", ".")
    assert done.code == 0
    assert "nothing to rewrite: port.patch is empty" in done.out


def test_an_older_torch_that_the_project_admits_is_named_once_code_is_new(tpuport: Command, project: Path) -> None:
    (project / "requirements.txt").write_text("numpy\ntorch>=1.8\n")
    commit(project)
    done = tpuport("migrate", "--min-torch", "2.11", ".")
    assert "the new code may ask for torch 2.11 (--min-torch), and requirements.txt:2 admits 1.8" in done.out
    commit(project)
    assert "admits 1.8" not in tpuport("migrate", "--min-torch", "2.11", ".").out


def test_an_unknown_command_names_the_valid_ones(tpuport: Command) -> None:
    done = tpuport("lnt", ".")
    assert done.code == 2
    assert "there is no command 'lnt'; did you mean lint?\nhint: valid: plan, migrate, lint" in done.err


def test_a_broken_file_does_not_stop_the_others(tpuport: Command, project: Path) -> None:
    (project / "broken.py").write_text("x.cuda(\n")
    done = tpuport("migrate", ".")
    assert done.code == 2
    assert "broken.py: failed: syntax error, line 1" in done.out
    assert (project / "train.py").read_text() == MIGRATED


def test_a_link_out_of_the_root_is_named_and_its_target_left(
    tpuport: Command, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "x.py"
    outside.write_text("x.cuda()\n")
    (project / "link.py").symlink_to(outside)
    done = tpuport("migrate", ".")
    assert done.code == 0
    assert "link.py: skipped: a symbolic link that leads out of" in done.out
    assert outside.read_text() == "x.cuda()\n"


def test_a_diff_names_the_file_behind_a_link(tpuport: Command, project: Path) -> None:
    (project / "sub").mkdir()
    (project / "sub/link.py").symlink_to("../train.py")
    commit(project)
    done = tpuport("migrate", "sub", "--diff")
    assert done.out.startswith("--- a/train.py\n")
    assert tpuport("migrate", "sub").code == 0
    assert (project / "sub/link.py").is_symlink()
    assert (project / "train.py").read_text() == MIGRATED
