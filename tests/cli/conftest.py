"""Fixtures that run commands over a small repository, with a small core in the place of the real one."""

import sys
import types
from pathlib import Path

import pytest
from small_core import RULES, Command, Done, commit, findings, git, rewrite

from tpuport import catalog
from tpuport.cli import app


@pytest.fixture
def small_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the small core in place."""
    for name, function in (("match", findings), ("rewrite", rewrite)):
        module = types.ModuleType(f"tpuport.{name}")
        setattr(module, function.__name__, function)
        monkeypatch.setitem(sys.modules, f"tpuport.{name}", module)
        monkeypatch.setattr(f"tpuport.{name}", module, raising=False)
    monkeypatch.setattr(catalog, "load", lambda extra=(), examples=False: catalog.Catalog(RULES))  # noqa: ARG005


@pytest.fixture
def tpuport(small_core: None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:  # noqa: ARG001
    """Run a command in this process, as the installed script does."""

    def run(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["tpuport", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            app.main()
        captured = capfd.readouterr()
        code = ended.value.code
        return Done(code if isinstance(code, int) else 0 if code is None else 1, captured.out, captured.err)

    return run


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A committed repository with one file of each kind, which is the current directory."""
    (tmp_path / "train.py").write_text("import torch\nx = y.cuda()\ntorch.cuda.nope\nz = x.half()\n")
    (tmp_path / "info.py").write_text("cudnn = 1\n")
    (tmp_path / "plain.py").write_text("import os\n")
    git(tmp_path, "init")
    commit(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path
