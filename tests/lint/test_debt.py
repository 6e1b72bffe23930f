"""Living with findings that were there before: baselines, changed lines, severities."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.lint.conftest import Lint


def git(directory: Path, *arguments: str) -> str:
    settings = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *settings, *arguments], cwd=directory, capture_output=True, text=True, check=True)
    return done.stdout


def commit(directory: Path) -> None:
    git(directory, "add", "--all")
    git(directory, "commit", "-m", "x")


@pytest.fixture
def debt(project: Path) -> Path:
    """A repository with 300 findings in 30 files."""
    for number in range(30):
        body = "".join(f"def f{line}(x):\n    return x.cuda()\n\n\n" for line in range(10))
        (project / f"m{number:02}.py").write_text(f"import torch\n\n\n{body}")
    (project / "train.py").unlink()
    git(project, "init")
    commit(project)
    return project


def test_a_baseline_makes_ci_green_and_shows_only_what_is_new(debt: Path, lint: Lint) -> None:
    assert lint(".", "--format", "concise").out.count(" TP101 ") == 300
    written = lint(".", "--baseline", "tpuport-baseline.json", "--write-baseline")
    assert written.code == 0
    assert "300 findings written to tpuport-baseline.json" in written.out
    green = lint(".", "--baseline", "tpuport-baseline.json")
    assert green.code == 0
    assert "300 in the baseline" in green.out
    moved = debt / "m07.py"
    moved.write_text("# a new line\n\n" + moved.read_text().replace("    return x", "        return   x"))
    moved.write_text(moved.read_text().replace("def f", "if 1:\n    def f"))
    new = debt / "m08.py"
    new.write_text(new.read_text().replace("def f3(x):\n", "def f3(x):\n    y = x.cuda()\n"))
    red = lint(".", "--baseline", "tpuport-baseline.json", "--format", "concise")
    assert red.code == 1
    assert [line.partition(": ")[0] for line in red.out.splitlines()[:-1]] == ["m08.py:17:9"]


def test_equal_lines_are_counted(debt: Path, lint: Lint) -> None:
    file = debt / "m00.py"
    file.write_text("x.cuda()\nx.cuda()\n")
    lint("m00.py", "--baseline", "b.json", "--write-baseline")
    file.write_text("x.cuda()\nx.cuda()\nx.cuda()\n")
    assert lint("m00.py", "--baseline", "b.json", "--format", "concise").out.startswith("m00.py:3:1: TP101")


def test_fixed_entries_are_reported_and_dropped(debt: Path, lint: Lint) -> None:
    lint(".", "--baseline", "b.json", "--write-baseline")
    file = debt / "m03.py"
    file.write_text(file.read_text().replace("return x.cuda()", "return x", 3))
    (debt / "m04.py").unlink()
    done = lint(".", "--baseline", "b.json")
    assert done.code == 0
    assert "note: 13 findings of the baseline are fixed" in done.out
    assert "m03.py: TP101 return x.cuda()" in done.out
    stale = json.loads(lint(".", "--baseline", "b.json", "--json").out)["baseline"]["stale"]
    assert sum(entry["count"] for entry in stale) == 13
    assert stale[0] == {"file": "m03.py", "code": "TP101", "scope": "f0", "line": "return x.cuda()", "count": 1}
    lint(".", "--baseline", "b.json", "--write-baseline")
    assert "note" not in lint(".", "--baseline", "b.json").out


def test_a_partial_run_neither_calls_the_rest_stale_nor_drops_it(debt: Path, lint: Lint) -> None:
    lint(".", "--baseline", "b.json", "--write-baseline")
    for extra in (["m00.py"], [".", "--select", "TP2"]):
        assert "note" not in lint(*extra, "--baseline", "b.json").out
    (debt / "m00.py").write_text("cuda(\n")
    done = lint(".", "--baseline", "b.json")
    assert done.code == 2
    assert "note" not in done.out
    lint("m01.py", "--baseline", "b.json", "--write-baseline")
    lint(".", "--select", "TP2", "--baseline", "b.json", "--write-baseline")
    assert lint("m02.py", "--baseline", "b.json").code == 0


def test_a_baseline_in_the_settings_and_another_directory(
    debt: Path, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    (debt / "pyproject.toml").write_text('[tool.tpuport]\nbaseline = "ci/b.json"\n')
    (debt / "ci").mkdir()
    assert lint(".", "--write-baseline").code == 0
    assert '"../m00.py": [' in (debt / "ci/b.json").read_text()
    (debt / "sub").mkdir()
    monkeypatch.chdir(debt / "sub")
    assert lint("..").code == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no baseline b.json"),
        ("{", "b.json: not a readable baseline"),
        ("[]", "b.json: not a baseline of tpuport"),
        ('{"version": 1}', "b.json: not a baseline of tpuport"),
        ('{"version": 1, "files": {"a": [{"code": 1}]}}', "b.json: not a baseline of tpuport"),
        ('{"version": 99, "files": {}}', "b.json: version 99"),
    ],
)
def test_a_baseline_that_cannot_be_used_is_2(project: Path, lint: Lint, content: str | None, message: str) -> None:
    if content is not None:
        (project / "b.json").write_text(content)
    done = lint(".", "--baseline", "b.json")
    assert (done.code, done.out) == (2, "")
    assert message in done.err


@pytest.mark.usefixtures("project")
def test_write_baseline_needs_a_file(lint: Lint) -> None:
    assert "--write-baseline needs to know where" in lint(".", "--write-baseline").err


def lines_shown(out: str) -> list[str]:
    return [line.rpartition(":")[0].partition(": ")[0].rpartition(":")[0] for line in out.splitlines() if " TP" in line]


def test_only_changed_lines_staged_unstaged_committed_and_untracked(debt: Path, lint: Lint) -> None:
    git(debt, "checkout", "-b", "work")
    for number, text in ((1, "a"), (2, "b"), (3, "c")):
        file = debt / f"m0{number}.py"
        file.write_text(file.read_text().replace("def f2(x):\n", f"def f2(x):\n    {text} = x.cuda()\n"))
        if number == 1:
            commit(debt)
        elif number == 2:
            git(debt, "add", "m02.py")
    (debt / "new file é.py").write_text("x.cuda()\n")
    done = lint(".", "--diff-base", "main", "--format", "concise")
    assert done.code == 1
    assert lines_shown(done.out) == ["m01.py:13", "m02.py:13", "m03.py:13", "new file é.py:1"]
    assert "300 on unchanged lines" in done.out
    git(debt, "add", "new file é.py")
    assert lines_shown(lint(".", "--diff-base", "HEAD", "--format", "concise").out) == [
        "m02.py:13",
        "m03.py:13",
        "new file é.py:1",
    ]
    assert git(debt, "stash", "list") == ""


def test_a_base_that_moved_on_is_compared_where_the_histories_parted(debt: Path, lint: Lint) -> None:
    git(debt, "checkout", "-b", "work")
    (debt / "own.py").write_text("x.cuda()\n")
    commit(debt)
    git(debt, "checkout", "main")
    (debt / "m05.py").write_text("import torch\n")
    commit(debt)
    git(debt, "checkout", "work")
    assert lines_shown(lint(".", "--diff-base", "main", "--format", "concise").out) == ["own.py:1"]


def test_a_renamed_file_keeps_its_old_lines(debt: Path, lint: Lint) -> None:
    git(debt, "mv", "m06.py", "renamed.py")
    done = lint(".", "--diff-base", "HEAD")
    assert done.code == 0
    assert "300 on unchanged lines" in done.out


def test_the_users_git_settings_do_not_matter(debt: Path, lint: Lint) -> None:
    for key, value in {
        "diff.noprefix": "true",
        "diff.interHunkContext": "50",
        "color.ui": "always",
        "diff.external": "false",
        "diff.mnemonicPrefix": "true",
        "core.quotePath": "true",
        "diff.context": "9",
    }.items():
        git(debt, "config", key, value)
    file = debt / "m09.py"
    file.write_text(file.read_text().replace("return x.cuda()", "return  x.cuda()", 1).rstrip())
    assert lines_shown(lint(".", "--diff-base", "HEAD", "--format", "concise").out) == ["m09.py:5", "m09.py:41"]


@pytest.mark.parametrize("revision", ["nowhere", "-x", "HEAD:m00.py"])
def test_an_unknown_revision_is_2(debt: Path, lint: Lint, revision: str) -> None:
    done = lint(".", f"--diff-base={revision}")
    assert done.code == 2
    assert f"git knows no revision '{revision}'" in done.err
    assert debt


@pytest.mark.usefixtures("project")
def test_outside_of_a_repository_is_2(lint: Lint) -> None:
    assert "is in no git repository" in lint(".", "--diff-base", "HEAD").err


def test_severities_as_the_settings_have_them(project: Path, lint: Lint) -> None:
    (project / "guarded.py").write_text(
        "import torch\nif torch.cuda.is_available():\n    torch.cuda.ipc_collect()\ntorch.cuda.ipc_collect()\n"
    )
    plain = [f["severity"] for f in json.loads(lint(".", "--json", "--severity", "info").out)["findings"]]
    settings = project / "pyproject.toml"
    settings.write_text('[tool.tpuport.severity]\nTP1 = "info"\ncuda-call = "warning"\n')
    found = json.loads(lint(".", "--json", "--severity", "info").out)["findings"]
    assert {f["severity"] for f in found if f["code"] == "TP101"} == {"warning"}
    assert {f["severity"] for f in found if f["code"] == "TP110"} == {"info"}
    assert len(plain) == len(found)
    settings.write_text('[tool.tpuport.severity]\nTP299 = "error"\n')
    raised = json.loads(lint("guarded.py", "--json", "--severity", "info").out)["findings"]
    assert "info" in {f["severity"] for f in raised}


def test_hints_fail_nothing_unless_asked(project: Path, lint: Lint) -> None:
    (project / "pyproject.toml").write_text('[tool.tpuport.severity]\nTP = "info"\n')
    assert lint(".").code == 0
    assert lint(".", "--severity", "info").code == 0
    assert lint(".", "--severity", "info", "--fail-on", "info").code == 1
    assert lint(".", "--severity", "error", "--fail-on", "info").code == 0


def test_reasons_can_be_required(project: Path, lint: Lint) -> None:
    (project / "train.py").write_text("x.cuda()  # tpuport: ignore[TP101]\n")
    assert lint(".").code == 0
    assert "TP003" in lint(".", "--require-reason").out
    (project / "pyproject.toml").write_text("[tool.tpuport]\nrequire-reason = true\n")
    assert lint(".").code == 1
