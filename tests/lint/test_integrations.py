"""pre-commit over the hooks as they are published, and the action's form."""

import json
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.lint.test_debt import commit, git

TOP = Path(__file__).parents[2]
OLD = "import torch\n\n\ndef f(x):\n    return x.cuda()\n"


@pytest.fixture
def hooked(tmp_path: Path) -> Path:
    """A repository with old findings where pre-commit runs the published hooks, with the tpuport that is tested."""
    hooks = yaml.safe_load((TOP / ".pre-commit-hooks.yaml").read_text())
    for hook in hooks:
        hook["language"] = "system"
        hook["entry"] = hook["entry"].replace("tpuport", f"{sys.executable} -m tpuport", 1)
    hooks[0]["args"] = ["--diff-base", "HEAD"]
    hooks[1]["stages"] = ["manual"]
    (tmp_path / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [{"repo": "local", "hooks": hooks}]}))
    (tmp_path / "old.py").write_text(OLD)
    (tmp_path / "third_party").mkdir()
    (tmp_path / "third_party/theirs.py").write_text(OLD)
    (tmp_path / "tpuport.toml").write_text('exclude = ["third_party/"]\n')
    git(tmp_path, "init")
    commit(tmp_path)
    return tmp_path


def pre_commit(directory: Path, *arguments: str) -> tuple[int, str]:
    environment = {**os.environ, "PRE_COMMIT_HOME": str(directory.parent / "home"), "PYTHONPATH": str(TOP)}
    environment = {key: value for key, value in environment.items() if not key.startswith("GIT_")}
    command = [sys.executable, "-m", "pre_commit", "run", "--color=never", *arguments]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_lint_hook_sees_what_is_staged_and_nothing_else(hooked: Path) -> None:
    file = hooked / "old.py"
    file.write_text(OLD + "\n\ndef g(x):\n    return x.to('cpu')\n")
    git(hooked, "add", "old.py")
    unstaged = file.read_text() + "\n\nh = torch.ones(2).cuda()\n"
    file.write_text(unstaged)
    code, out = pre_commit(hooked)
    assert code == 0, out
    assert "Stashing unstaged files" in out or "Unstaged files detected" in out
    assert file.read_text() == unstaged
    git(hooked, "add", "old.py")
    code, out = pre_commit(hooked)
    assert code == 1
    assert "old.py:12:5: TP101" in out
    assert "old.py:5" not in out


def test_the_lint_hook_with_a_baseline(hooked: Path) -> None:
    config = yaml.safe_load((hooked / ".pre-commit-config.yaml").read_text())
    config["repos"][0]["hooks"][0]["args"] = ["--baseline", "known.json"]
    (hooked / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    command = [sys.executable, "-m", "tpuport", "lint", ".", "--baseline", "known.json", "--write-baseline"]
    subprocess.run(command, cwd=hooked, check=True, capture_output=True)
    (hooked / "new.py").write_text("import os\n")
    git(hooked, "add", "--all")
    (hooked / "old.py").write_text("# unstaged\n" + OLD + "y.cuda()\n")
    code, out = pre_commit(hooked)
    assert code == 0, out
    git(hooked, "add", "--all")
    code, out = pre_commit(hooked)
    assert code == 1
    assert "1 finding in 1 file" in out


def test_excluded_files_stay_out_though_pre_commit_gives_them(hooked: Path) -> None:
    config = (
        (hooked / ".pre-commit-config.yaml").read_text().replace("--diff-base", "--severity").replace("HEAD", "info")
    )
    (hooked / ".pre-commit-config.yaml").write_text(config)
    code, out = pre_commit(hooked, "--all-files")
    assert code == 1
    assert "old.py:5:12" in out
    assert "theirs" not in out


def test_the_migrate_hook_rewrites_and_then_passes(hooked: Path) -> None:
    (hooked / "new.py").write_text("import torch\nx = torch.ones(2).cuda()\n")
    git(hooked, "add", "new.py")
    code, out = pre_commit(hooked, "--hook-stage", "manual", "tpuport-migrate")
    assert code == 1
    assert "files were modified by this hook" in out
    assert ".cuda()" not in (hooked / "new.py").read_text()
    git(hooked, "add", "new.py")
    assert pre_commit(hooked, "--hook-stage", "manual", "tpuport-migrate")[0] == 0


def test_the_hooks_file_is_one_that_pre_commit_takes() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "validate-manifest", str(TOP / ".pre-commit-hooks.yaml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert [hook["id"] for hook in yaml.safe_load((TOP / ".pre-commit-hooks.yaml").read_text())] == [
        "tpuport-lint",
        "tpuport-migrate",
    ]


@pytest.fixture
def action() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((TOP / "action.yml").read_text())
    return loaded


def test_the_action_has_the_form_that_github_takes(action: dict[str, Any]) -> None:
    schema = files("check_jsonschema").joinpath("builtin_schemas/vendor/github-actions.json")
    jsonschema.Draft7Validator(json.loads(schema.read_text(encoding="utf-8"))).validate(action)


@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="the action's steps are for bash")
def test_the_actions_last_step_runs_lint_with_its_inputs(action: dict[str, Any], hooked: Path, tmp_path: Path) -> None:
    runner = tmp_path / "runner/tpuport/bin"
    runner.mkdir(parents=True)
    command = runner / "tpuport"
    command.write_text(f'#!/bin/bash\nexec {sys.executable} -m tpuport "$@"\n')
    command.chmod(0o755)
    step = action["runs"]["steps"][-1]
    inputs = {name: entry["default"] for name, entry in action["inputs"].items()}
    inputs |= {"diff-base": "HEAD", "args": "--severity info --jobs 1", "paths": "old.py new.py"}
    (hooked / "new.py").write_text("x.cuda()\n")
    values = {name: inputs[text.split("inputs.")[1].split()[0]] for name, text in step["env"].items()}
    environment = {**os.environ, **values, "RUNNER_TEMP": str(tmp_path / "runner"), "PYTHONPATH": str(TOP)}
    done = subprocess.run(
        ["/bin/bash", "-e", "-o", "pipefail", "-c", step["run"]],
        cwd=hooked,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.count("::error") == 1
    assert "::error file=new.py,line=1," in done.stdout
