"""A scratch repository with CUDA code, and the command over it with the real core."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command import Done, tpuport

Lint = Callable[..., Done]

TRAIN = """\
import torch


class Trainer:
    def move(self, x):
        return x.cuda()


model = torch.nn.Linear(2, 2).cuda()
torch.cuda.ipc_collect()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with two files, which is the current one."""
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "plain.py").write_text("import os\n")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n')
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TPUPORT_CACHE_DIR", str(tmp_path.parent / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def lint() -> Lint:
    """Run `tpuport lint`, or another command, in the current directory."""
    return lambda *arguments, command="lint": tpuport(command, *arguments, cwd=Path.cwd())
