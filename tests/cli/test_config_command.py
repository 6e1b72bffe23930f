import json
from pathlib import Path

import pytest

from tests.lint.conftest import Lint, lint, project

__all__ = ["lint", "project"]


def test_every_setting_with_where_it_comes_from(project: Path, lint: Lint) -> None:
    (project / "pyproject.toml").write_text(
        '[tool.ruff]\nline-length = 99\n\n[tool.tpuport]\nignore = ["TP1"]\n\n[tool.tpuport.severity]\nTP2 = "error"\n'
    )
    (project / "requirements.txt").write_text("torch>=2.7\n")
    content = json.loads(lint("--json", command="config").out)
    assert content["root"] == str(project)
    assert content["file"] == str(project / "pyproject.toml")
    settings = {name: (entry["value"], entry["from"]) for name, entry in content["settings"].items()}
    assert settings["ignore"] == (["TP1"], "pyproject.toml:5")
    assert settings["severity"] == ({"TP2": "error"}, "pyproject.toml:7")
    assert settings["line-length"] == (99, "pyproject.toml, ruff")
    assert settings["min-torch"] == ("2.7", "requirements.txt:1")
    assert settings["time-limit"] == (30.0, "default")
    assert content["rules"]["in_force"] < content["rules"]["known"]


def test_text_has_a_line_a_setting(project: Path, lint: Lint) -> None:
    (project / "tpuport.toml").write_text('min-torch = "2.9"\n[severity]\nTP1 = "info"\n')
    out = lint("train.py", command="config").out
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line}
    assert rows["min-torch"] == ["tpuport.toml:1", '"2.9"']
    assert rows["severity"] == ["tpuport.toml:2", '{"TP1":', '"info"}']
    assert rows["baseline"] == ["default", "-"]


def test_values_stand_in_one_column_however_long_they_are(project: Path, lint: Lint) -> None:
    (project / "tpuport.toml").write_text(f"exclude = {[f'folder{number}' for number in range(20)]}\n")
    lines = [line for line in lint(command="config").out.splitlines() if "  " in line][2:]
    starts = {len(line) - len(line.split("  ")[-1].lstrip()) for line in lines}
    assert len(starts) == 1


def test_a_rule_that_does_not_exist_is_said(project: Path, lint: Lint) -> None:
    (project / "tpuport.toml").write_text('[severity]\ncuda-cal = "info"\n')
    done = lint(command="config")
    assert done.code == 2
    assert "tpuport.toml:1: `severity`: unknown rule 'cuda-cal'; did you mean cuda-call?" in done.err


def test_a_budget_that_does_not_exist_is_said(project: Path, lint: Lint) -> None:
    (project / "tpuport.toml").write_text('budgets = ["graph-break>0"]\n')
    done = lint(command="config")
    assert done.code == 2
    assert "tpuport.toml:1: `budgets`: unknown limit 'graph-break'; did you mean graph-breaks?" in done.err


@pytest.mark.parametrize(
    "setting", ['select = ["TP8888"]', 'ignore = ["TP8888"]', 'per-file-ignores = {a = ["TP8888"]}']
)
def test_an_unknown_code_is_named_with_its_place(project: Path, lint: Lint, setting: str) -> None:
    (project / "tpuport.toml").write_text(f"# ours\n{setting}\n")
    key = setting.split()[0]
    for command in ("lint", "config"):
        done = lint("." if command == "lint" else "train.py", command=command)
        assert done.code == 2
        assert f"tpuport.toml:2: `{key}`: unknown rule 'TP8888'" in done.err


def test_a_wrong_severity_is_named_with_its_rule(project: Path, lint: Lint) -> None:
    (project / "tpuport.toml").write_text('severity = {TP101 = "fatal"}\n')
    done = lint(command="config")
    assert done.code == 2
    assert 'tpuport.toml:1: `severity` has to be one of "error", "warning", "info" for TP101' in done.err
