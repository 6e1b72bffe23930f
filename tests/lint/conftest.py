"""A scratch repository with CUDA code, and the command over it with the real core."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tpuport.cli import app


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


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
def lint(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Lint:
    """Run `tpuport lint` in this process, as the installed script does."""

    def run(*arguments: object, command: str = "lint") -> Done:
        monkeypatch.setattr(sys, "argv", ["tpuport", command, *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            app.main()
        captured = capfd.readouterr()
        return Done(int(ended.value.code or 0), captured.out, captured.err)

    return run
