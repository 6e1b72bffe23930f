from pathlib import Path

import pytest

from tpuport.config import Config, load
from tpuport.errors import ConfigError
from tpuport.model import Severity


def settings(root: Path, content: str, name: str = "pyproject.toml") -> Config:
    (root / name).write_text(content)
    return load(root)


def test_without_settings_the_root_is_the_projects_top(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "a/b").mkdir(parents=True)
    assert load(tmp_path / "a/b") == Config(tmp_path)
    assert load(tmp_path / "a/b/missing.py") == Config(tmp_path)
    (tmp_path / "a/setup.cfg").write_text("[flake8]\nmax-line-length = 99\n")
    assert load(tmp_path / "a/b") == Config(tmp_path, line_length=99)
    assert load(tmp_path) == Config(tmp_path)


def test_without_a_repository_the_root_is_the_nearest_project(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    assert load(tmp_path / "a/b").root == tmp_path / "a/b"
    (tmp_path / "a/setup.py").touch()
    assert load(tmp_path / "a/b").root == tmp_path / "a"


def test_every_setting_is_read(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        """
        [tool.tpuport]
        select = ["TPU"]
        ignore = ["TPU101", "stream"]
        exclude = ["third_party/"]
        min-torch = "2.6"
        line-length = 99
        rules = ["my_rules"]
        max-file-size = 1000
        time-limit = 2.5
        budgets = ["graph-breaks>0"]
        require-reason = true
        baseline = "ci/known.json"
        [tool.tpuport.severity]
        TPU1 = "info"
        [tool.tpuport.per-file-ignores]
        "tests/*" = ["TPU2"]
        """,
    )
    assert found == Config(
        root=tmp_path,
        file=tmp_path / "pyproject.toml",
        select=("TPU",),
        ignore=("TPU101", "stream"),
        exclude=("third_party/",),
        per_file_ignores={"tests/*": ("TPU2",)},
        min_torch="2.6",
        line_length=99,
        rules=(tmp_path / "my_rules",),
        max_file_size=1000,
        time_limit=2.5,
        severity={"TPU1": Severity.INFO},
        require_reason=True,
        baseline=tmp_path / "ci/known.json",
        budgets=("graph-breaks>0",),
    )


def test_the_nearest_file_with_settings_wins_and_a_standalone_file_first(tmp_path: Path) -> None:
    settings(tmp_path, '[tool.tpuport]\nselect = ["A"]\n')
    sub = tmp_path / "sub"
    sub.mkdir()
    (sub / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert load(sub).select == ("A",)
    (sub / "tpuport.toml").write_text('select = ["B"]\n')
    assert load(sub).select == ("B",)
    assert load(sub).root == sub


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[tool.tpuport\n", r"pyproject\.toml:1:14: not valid TOML"),
        ("[project]\nname = \n", r"pyproject\.toml:2:8: not valid TOML"),
        ("[tool.tpuport]\nselct = []\n", r"pyproject\.toml:2: unknown setting `selct`; did you mean select\?"),
        ("[tool.tpuport]\nmin_torch = '2.6'\n", "did you mean min-torch"),
        ("[tool.tpuport]\n\nselect = 'TPU1'\n", r":3: `select` has to be a list of strings, not the string 'TPU1'"),
        ("[tool.tpuport]\nignore = [1]\n", "has to be a list of strings"),
        ("[tool.tpuport]\nmin-torch = 2.6\n", r"a version in quotes, such as \"2\.6\", not the number 2\.6"),
        ("[tool.tpuport]\nline-length = true\n", "a whole number above 0, not the boolean True"),
        ("[tool.tpuport]\nmax-file-size = 0\n", "a whole number above 0"),
        ("[tool.tpuport]\ntime-limit = 'x'\n", "a number above 0"),
        ("[tool.tpuport]\nper-file-ignores = []\n", "a table of file pattern"),
        ("[tool.tpuport.per-file-ignores]\n'a' = 1\n", r":1: `per-file-ignores` has to be a list of strings"),
        ("[tool]\ntpuport = 1\n", "has to be a table, not the integer"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings(tmp_path, content)


def test_no_unicode_is_no_toml(tmp_path: Path) -> None:
    (tmp_path / "tpuport.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "width"),
    [
        ("pyproject.toml", "[tool.black]\nline-length = 100\n", 100),
        ("pyproject.toml", "[tool.ruff]\nline-length = 101\n[tool.black]\nline-length = 88\n", 101),
        ("ruff.toml", "line-length = 90\n", 90),
        ("setup.cfg", "[flake8]\nmax-line-length = 110\n", 110),
        ("setup.cfg", "[flake8]\nmax-line-length = wide\n", None),
        ("setup.cfg", "no section\n", None),
        (".flake8", "[flake8]\nignore = E501\n", None),
        ("pyproject.toml", "[tool.black]\nline-length = 'x'\n", None),
    ],
)
def test_the_formatters_width_is_taken_over(tmp_path: Path, name: str, content: str, width: int | None) -> None:
    assert settings(tmp_path, content, name).line_length == width
