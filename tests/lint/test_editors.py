"""Text on standard input, and files that are given though they are excluded: for editors and pre-commit."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lint.conftest import TRAIN, Lint


def piped(cwd: Path, text: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "tpuport", "lint", *arguments]
    return subprocess.run(command, cwd=cwd, input=text, capture_output=True, check=False, timeout=60)


def test_standard_input_is_linted_under_its_files_name_and_settings(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.tpuport.per-file-ignores]\n"legacy/*" = ["TP101"]\n')
    done = piped(project, TRAIN.encode(), "-", "--stdin-filename", "src/unsaved.py", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)["findings"]
    assert [(f["file"], f["line"]) for f in found] == [("src/unsaved.py", line) for line in (6, 9, 10)]
    done = piped(project, b"x.cuda()\n", "-", "--stdin-filename", "legacy/a.py")
    assert done.returncode == 0


@pytest.mark.parametrize(("text", "code"), [(b"", 0), (b"x.cuda(\n", 2), (b"\0", 2), (b"\xff", 2)])
def test_any_input_has_an_outcome(project: Path, text: bytes, code: int) -> None:
    assert piped(project, text, "-", "--format", "sarif").returncode == code


@pytest.mark.usefixtures("project")
def test_standard_input_goes_alone(lint: Lint) -> None:
    assert "`-`, is linted alone" in lint("-", "train.py").err
    assert "--stdin-filename goes with PATH `-`" in lint("train.py", "--stdin-filename", "x.py").err


def test_excluded_files_are_left_out_even_if_given(project: Path, lint: Lint) -> None:
    (project / "pyproject.toml").write_text('[tool.tpuport]\nexclude = ["third_party/"]\n')
    for name in ("third_party", "build"):
        (project / name / "deep").mkdir(parents=True)
        (project / name / "deep/a.py").write_text("x.cuda()\n")
    given = ["third_party/deep/a.py", "build/deep/a.py", "train.py"]
    assert "in 3 files" in lint(*given).out
    assert "in 1 file " in lint(*given, "--force-exclude").out
    none = lint(*given[:2], "--force-exclude")
    assert (none.code, none.out) == (0, "No findings; 0 files checked.\n")
    before = (project / given[0]).read_text()
    assert lint(*given[:2], "--force-exclude", command="migrate").code == 0
    assert (project / given[0]).read_text() == before
    assert piped(project, b"x.cuda()\n", "-", "--stdin-filename", given[0], "--force-exclude").returncode == 0
