"""Which files are read, by their names; and that pre-commit hands over the same ones."""

import re
from pathlib import Path

import pytest
import yaml

from tpuport import kinds
from tpuport.analysis.libraries import STAND_INS
from tpuport.kinds.python import is_candidate
from tpuport.source.project import uses_torch

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
    "Makefile": "makefile",
    "rules.mk": "makefile",
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


@pytest.mark.parametrize("library", [*STAND_INS, "torch_xla", "transformers", "lightning"])
def test_a_file_that_imports_such_a_library_is_parsed(library: str) -> None:
    package, _, leaf = library.rpartition(".")
    forms = [
        f"import {library} as it",
        f"import os, {library}",
        f"import os, \\\n    {library}",
        f"import\t{library}",
        f"from {library}.part import (\n    Thing,\n)",
        f"from {package} import {leaf}" if package else f"from  {library} import Thing",
    ]
    assert [form for form in forms if not is_candidate(form.encode())] == []


def test_importing_torch_beside_others_is_using_it() -> None:
    assert uses_torch(b"import os, torch\n")
    assert uses_torch(b"from torch.nn import Linear\n")
    assert not uses_torch(b"import os\n\nNAMES = os, 'torch'\n")
