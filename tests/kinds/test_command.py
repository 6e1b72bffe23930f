"""Files that are no Python go the way of all others: every option of lint and migrate holds for them too."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.command import tpuport as run_command

FILES = {
    "model.py": b"import torch\n\nx = torch.ones(2)\n",
    "requirements.txt": b"torch==2.1.0+cu121\r\ntqdm\r\n",
    "scripts/run.sh": b"#!/bin/bash\n# caf\xc3\xa9\nnvidia-smi\npython model.py\n",
    "conf/config.yaml": b"# keep\ndevice:   cuda # as it is\n",
    "data/table.json": b'{"device": "cuda", "x": "' + b"-" * 200_000 + b'"}',
    "bad.json": b'{"device": CUDA}\n',
    "latin.yaml": b"device: cuda\nname: \xe9\n",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A committed repository with one file of several kinds, which is the current directory."""
    root = tmp_path / "project"
    for name, content in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    (root / "scripts/run.sh").chmod(0o755)
    monkeypatch.setenv("TPUPORT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(root)
    git("init", "-q")
    commit()
    return root


def git(*arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@y", *arguments], check=True, capture_output=True)


def commit() -> None:
    git("add", "-A")
    git("commit", "-qm", "x")


def tpuport(*arguments: str, code: int = 0, text: bytes = b"") -> str:
    done = run_command(*arguments, cwd=Path.cwd(), text=text)
    assert done.code == code, done
    return done.out + done.err


def found(*arguments: str) -> set[str]:
    content = json.loads(tpuport("lint", *arguments, "--json", code=1))
    return {f"{finding['file']}:{finding['line']}:{finding['code']}" for finding in content["findings"]}


@pytest.mark.usefixtures("project")
def test_lint_names_them_with_all_others() -> None:
    content = json.loads(tpuport("lint", ".", "--json", code=1))
    assert {f"{finding['file']}:{finding['line']}:{finding['code']}" for finding in content["findings"]} == {
        "requirements.txt:1:TP510",
        "requirements.txt:1:TP512",
        "scripts/run.sh:3:TP552",
        "conf/config.yaml:2:TP560",
    }
    assert {entry["file"]: entry["reason"].split(":")[0] for entry in content["skipped"]} == {
        "bad.json": "not JSON as it stands",
        "latin.yaml": "not UTF-8 text",
    }
    assert content["failures"] == []
    assert found(".") == found(".", "--no-cache")
    for form in ("text", "sarif", "github", "gitlab", "junit", "concise"):
        assert "config.yaml" in tpuport("lint", ".", "--format", form, code=1)


def test_migrate_previews_writes_and_settles(project: Path) -> None:
    diff = tpuport("migrate", "--diff", ".")
    assert "+++ b/scripts/run.sh\n" in diff
    assert "\n-nvidia-smi\n+if command -v nvidia-smi" in diff
    tpuport("migrate", "--patch", "../port.patch", ".")
    git("apply", "--check", "../port.patch")
    (project / "scripts/run.sh").write_bytes(FILES["scripts/run.sh"] + b"# edited\n")
    assert "uncommitted changes" in tpuport("migrate", ".", code=2)
    commit()
    assert "1 of 6 files changed: 1 site rewritten" in tpuport("migrate", ".")
    after = {name: (project / name).read_bytes() for name in FILES}
    assert {name for name in FILES if after[name] != FILES[name]} == {"scripts/run.sh"}
    assert after["scripts/run.sh"].startswith(b"#!/bin/bash\n# caf\xc3\xa9\nif command -v nvidia-smi ")
    assert os.access(project / "scripts/run.sh", os.X_OK)
    commit()
    assert "0 of 6 files changed" in tpuport("migrate", ".")


def test_settings_comments_and_the_baseline_hold(project: Path) -> None:
    (project / "tpuport.toml").write_text('[per-file-ignores]\n"conf/*" = ["TP560"]\n')
    (project / "requirements.txt").write_bytes(b"torch==2.1.0+cu121  # tpuport: ignore[TP51] our cluster\r\n")
    assert found(".") == {"scripts/run.sh:3:TP552"}
    tpuport("lint", ".", "--baseline", "b.json", "--write-baseline")
    tpuport("lint", ".", "--baseline", "b.json")
    (project / "scripts/run.sh").write_bytes(b"# moved\n\n" + FILES["scripts/run.sh"] + b"nvidia-smi -q | grep x\n")
    assert found(".", "--baseline", "b.json") == {"scripts/run.sh:7:TP552"}
    assert found(".", "--diff-base", "HEAD") == {"scripts/run.sh:7:TP552"}


def test_annotations_are_comments_of_the_file(project: Path) -> None:
    tpuport("migrate", "--annotate", ".")
    text = (project / "conf/config.yaml").read_bytes()
    assert text.startswith(b"# keep\n# TODO(tpuport): TP560 ")
    assert text.endswith(b"\ndevice:   cuda # as it is\n")
    assert (project / "requirements.txt").read_bytes().count(b"\r\n") == 4
    commit()
    assert "0 of 6 files changed" in tpuport("migrate", "--annotate", ".")


def test_a_project_without_torch_hears_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "requirements.txt").write_text("flask\nnumpy<2\ncupy-cuda12x\n")
    (tmp_path / "app.py").write_text("import flask\n")
    (tmp_path / "Dockerfile").write_text("FROM nvidia/cuda:12.1-base\nRUN nvidia-smi\n")
    (tmp_path / "values.yaml").write_text("device: cuda\n")
    monkeypatch.chdir(tmp_path)
    assert "No findings; 4 files checked." in tpuport("lint", ".", "--severity", "info")
    assert found("Dockerfile") == {"Dockerfile:1:TP550", "Dockerfile:2:TP552"}, "asked for by name"


@pytest.mark.usefixtures("project")
def test_standard_input_is_what_its_name_says() -> None:
    out = tpuport("lint", "-", "--stdin-filename", "x/train.yaml", code=1, text=b"device: cuda\n")
    assert "TP560" in out
