"""Which files are read, by their names; and that pre-commit hands over the same ones."""

import re
from pathlib import Path

import pytest
import yaml

from tpuport import kinds

NAMES = {
    "a/train.py": "python",
    "stub.pyi": "python",
    "conf/x.yaml": "yaml",
    ".github/workflows/ci.yml": "yaml",
    "ds_config.json": "json",
    "pyproject.toml": "toml",
    "Pipfile": "toml",
    "setup.cfg": "cfg",
    "tox.ini": "",
    "run.sh": "shell",
    "job.slurm": "shell",
    "Dockerfile": "dockerfile",
    "docker/Dockerfile.gpu": "dockerfile",
    "gpu.Dockerfile": "dockerfile",
    "Dockerfiles": "",
    "Containerfile": "dockerfile",
    "requirements.txt": "requirements",
    "requirements-dev.in": "requirements",
    "dev_requirements.txt": "requirements",
    "constraints.txt": "requirements",
    "requirements/base.txt": "requirements",
    "notes.txt": "",
    "my-requirements-notes.md": "",
    "uv.lock": "",
    "poetry.lock": "",
    "Pipfile.lock": "",
    "LICENSE": "",
    "README.md": "",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_tells_the_kind(name: str) -> None:
    assert kinds.of(name) == NAMES[name]


@pytest.mark.parametrize("kind", kinds.names())
def test_every_kind_has_a_handler(kind: str) -> None:
    assert callable(kinds.handler(kind).findings)


def test_pre_commit_hands_over_what_is_read() -> None:
    hooks = yaml.safe_load(Path(__file__).parents[2].joinpath(".pre-commit-hooks.yaml").read_text())
    for hook in hooks:
        assert {name for name in NAMES if re.search(hook["files"], name)} == {n for n, kind in NAMES.items() if kind}
