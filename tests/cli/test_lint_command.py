import json
from pathlib import Path

import pytest
from small_core import Command

TEXT = """\
train.py:2:6: TPU101 cuda-call message [*]
train.py:3:1: TPU201 no-such-thing message: nothing stands in for it
train.py:4:6: TPU102 half-call message [unsafe]
3 findings in 1 file (1 fixable with `tpuport migrate` [*], 1 with `tpuport migrate --unsafe`); 3 files checked, \
1 finding below the severity shown.
"""


def test_findings_are_lines_and_exit_1(tpuport: Command, project: Path) -> None:
    done = tpuport("lint", ".", "--format", "concise")
    assert (done.code, done.out, done.err) == (1, TEXT, "")
    assert not (project / ".git/index.lock").exists()


@pytest.mark.usefixtures("project")
def test_nothing_found_is_0(tpuport: Command) -> None:
    done = tpuport("lint", "plain.py", "info.py", "--no-cache")
    assert (done.code, done.out) == (
        0,
        "No findings; 2 files checked, 1 finding below the severity shown.\n",
    )


@pytest.mark.parametrize(("severity", "codes"), [("info", 4), ("warning", 3), ("error", 1)])
def test_severity_is_the_lowest_shown(tpuport: Command, project: Path, severity: str, codes: int) -> None:
    done = tpuport("lint", project, "--severity", severity)
    assert done.code == 1
    assert done.out.count(" TPU") == codes


def test_select_and_ignore(tpuport: Command, project: Path) -> None:
    assert tpuport("lint", project, "--select", "TPU2,TPU3").out.count(" TPU") == 1
    assert tpuport("lint", project, "--ignore", "TPU2", "--ignore", "half-call").out.count(" TPU") == 1
    (project / "tpuport.toml").write_text('select = ["TPU2"]\n')
    assert tpuport("lint", project).out.count(" TPU") == 1
    assert tpuport("lint", project, "--select", "TPU1").out.count(" TPU") == 2
    done = tpuport("lint", project, "--select", "TPU999")
    assert done.code == 2
    assert "TPU999" in done.err


def test_settings_ignore_rules_for_some_files(tpuport: Command, project: Path) -> None:
    (project / "tpuport.toml").write_text('[per-file-ignores]\n"train.py" = ["TPU1", "no-such-thing"]\n')
    assert tpuport("lint", project).code == 0


def test_json_has_every_part(tpuport: Command, project: Path) -> None:
    (project / "broken.py").write_text("cuda = (\n")
    (project / "n.ipynb").write_text('{"cuda": 1}')
    done = tpuport("lint", ".", "--json")
    assert done.code == 2
    content = json.loads(done.out)
    assert content["version"] == 1
    assert content["findings"][0] == {
        "file": "train.py",
        "cell": None,
        "line": 2,
        "column": 6,
        "end_line": 2,
        "end_column": 13,
        "code": "TPU101",
        "rule": "cuda-call",
        "severity": "warning",
        "message": "cuda-call message",
        "fixable": True,
        "safety": "safe",
        "reason": "",
    }
    assert [finding["fixable"] for finding in content["findings"]] == [True, False, True]
    assert content["failures"] == [{"file": "broken.py", "reason": "syntax error, line 1: '(' was never closed"}]
    assert content["skipped"] == [
        {"file": "n.ipynb", "reason": "not a notebook of format 4: open it in Jupyter and save it again"}
    ]
    assert content["summary"] == {"files": 5, "findings": 3, "hidden": 1, "known": 0, "unchanged": 0, "ignored": 0}


def test_a_file_that_fails_is_named_and_the_others_are_linted(tpuport: Command, project: Path) -> None:
    (project / "a_broken.py").write_text("x.cuda(\n")
    (project / "a_binary.py").write_bytes(b"\x7fELF\0cuda")
    done = tpuport("lint", ".")
    assert done.code == 2
    assert "a_broken.py: failed: syntax error, line 1" in done.out
    assert "a_binary.py: failed: binary data" in done.out
    assert done.out.count("train.py:") == 3
    assert "2 failed" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lint", "gone"], "no such file or directory: gone"),
        (["lint", "empty"], "nothing to read under empty"),
        (["lint", ".", "--format", "jsn"], "did you mean json?"),
        (["lint", ".", "--min-torch", "new"], "--min-torch: 'new' is not a torch version"),
        (["lint", "--nonsense", "."], "tpuport lint has no option --nonsense\nhint: tpuport lint --help lists its"),
        (["lint", "--selct", "TP1", "."], "no option --selct; did you mean --select?"),
        (["lint", "--n", "."], "no option --n\n"),
        (["lint"], "PATH"),
        (["lint", ".", "--severity", "bad"], "bad"),
        (["lint", ".", "--jobs", "-1"], "jobs"),
    ],
)
def test_wrong_usage_is_2_and_says_what(tpuport: Command, project: Path, arguments: list[str], message: str) -> None:
    (project / "empty").mkdir()
    done = tpuport(*arguments)
    assert done.code == 2
    assert message in done.err
    assert not done.out


def test_broken_settings_are_2_with_their_place(tpuport: Command, project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.tpuport]\nselct = []\n")
    done = tpuport("lint", ".")
    assert done.code == 2
    assert "pyproject.toml:2: unknown setting `selct`" in done.err


def test_an_old_floor_is_said_once_with_its_place(tpuport: Command, project: Path) -> None:
    (project / "requirements.txt").write_text("numpy\ntorch>=1.13\n")
    done = tpuport("lint", ".")
    assert done.out.count("note:") == 1
    assert "torch 1.13 (requirements.txt:2)" in done.out
    assert "note:" not in tpuport("lint", ".", "--min-torch", "2.11").out
    (project / "train.py").write_text("import torch\ntorch.cuda.nope\n")
    assert "note:" not in tpuport("lint", ".").out


@pytest.mark.usefixtures("project")
def test_a_rules_bug_is_reported_and_debug_shows_it(tpuport: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def bug(*_: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr("tpuport.match.findings", bug)
    done = tpuport("lint", "train.py")
    assert done.code == 2
    assert "a bug in tpuport" in done.out
    with pytest.raises(KeyError):
        tpuport("--debug", "lint", "train.py")


def test_names_that_cannot_be_printed_are_escaped(tpuport: Command, project: Path) -> None:
    odd = project / "odd\udcff.py"
    odd.write_text("x.cuda()\n")
    done = tpuport("lint", ".")
    assert done.code == 1
    assert "odd\\udcff.py:1:2" in done.out
    assert json.loads(tpuport("lint", odd, "--json").out)["findings"][0]["file"].endswith("odd\udcff.py")


@pytest.mark.usefixtures("project")
def test_colour_is_for_terminals(tpuport: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in tpuport("lint", ".").out
    assert "\x1b[" in tpuport("lint", ".", "--statistics").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert tpuport("lint", ".", "--format", "concise").out == TEXT


def test_many_files_go_to_workers(tpuport: Command, project: Path) -> None:
    for number in range(40):
        (project / f"many{number:02}.py").write_text("x.cuda()\n")
    done = tpuport("lint", ".", "--jobs", "2", "--json")
    assert done.code == 1
    files = [finding["file"] for finding in json.loads(done.out)["findings"]]
    assert files == sorted(files)
    assert len(files) == 43
