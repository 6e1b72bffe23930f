"""A CUDA-only repository on the whole path: migrated, the same on the CPU, linted, profiled on the emulated TPU."""

import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
FIXTURE = ROOT / "fixtures" / "tiny_trainer"
ONE_DEVICE = {"CUDA_VISIBLE_DEVICES": "0", "PYTHONPATH": str(ROOT)}
BENCH = ("bench.py", "--steps", "1")
LOSS = re.compile(r"^step \d+ loss (\S+)$", re.MULTILINE)


def run(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "TPUPORT_CACHE_DIR": str(folder.parent / "cache"),
        **variables,
    }
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def together(folder: Path, *commands: tuple[str, ...]) -> list[subprocess.CompletedProcess[str]]:
    """Run commands side by side: most of what they take is imports, on one core each."""
    with ThreadPoolExecutor() as threads:
        return list(threads.map(lambda command: run(folder, *command), commands))


def tpuport(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(folder, "-m", "tpuport", *arguments)


def sources(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*.py"))}


@dataclass(frozen=True)
class Port:
    """The repository after its migration, and what its training printed on the CPU before."""

    folder: Path
    losses: list[str]
    bench_failed: bool


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Port:
    folder = tmp_path_factory.mktemp("port") / "tiny_trainer"
    shutil.copytree(FIXTURE, folder, ignore=shutil.ignore_patterns("__pycache__", "*.pt"))
    training, bench = together(folder, ("train.py", "--no-cuda"), BENCH)
    done = tpuport(folder, "migrate", "--allow-dirty", ".")
    assert done.returncode == 0, done.stderr
    return Port(folder, LOSS.findall(training.stdout), bench.returncode != 0)


def test_second_migration_changes_nothing(port: Port) -> None:
    once = sources(port.folder)
    assert tpuport(port.folder, "migrate", "--allow-dirty", ".").returncode == 0
    assert sources(port.folder) == once


def test_it_runs_on_the_cpu_with_the_losses_of_before_and_what_needed_cuda_runs_too(port: Port) -> None:
    assert len(port.losses) == 24
    assert port.bench_failed
    *trainings, bench = together(port.folder, ("train.py",), ("train.py", "--no-cuda"), ("train.py", "--amp"), BENCH)
    assert [LOSS.findall(training.stdout) for training in trainings] == [port.losses] * 3
    assert bench.returncode == 0, bench.stderr


@pytest.mark.skipif(which("c++") is None, reason="the stand-in for CUDA needs a C++ compiler")
def test_trains_on_cuda_with_the_losses_of_before(port: Port, tmp_path: Path) -> None:
    """Digit for digit, on the stand-in for CUDA: AMP stays float16 there, and its scaler on."""
    shutil.copytree(FIXTURE, tmp_path / "before")
    on_cuda = ("-m", "tests.cuda_stand_in", "train.py", "--amp")
    before, after = (run(folder, *on_cuda, **ONE_DEVICE) for folder in (tmp_path / "before", port.folder))
    assert len(LOSS.findall(before.stdout)) == 24, before.stderr
    assert LOSS.findall(after.stdout) == LOSS.findall(before.stdout), after.stderr


def test_lint_names_what_is_left_and_nothing_to_fix(port: Port) -> None:
    done = tpuport(port.folder, "lint", "--json", ".")
    assert done.returncode == 1
    assert [f for f in json.loads(done.stdout)["findings"] if f["fixable"]] == []


@pytest.fixture(scope="module")
def profile(port: Port) -> Any:
    done = tpuport(port.folder, "profile", "--device", "emulated-tpu", "--steps", "4", "--json", "train.py")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_three_modes_complete_on_the_emulated_tpu(profile: Any) -> None:
    rows = profile["modes"]["rows"]
    assert [(row["mode"], row["failure"]) for row in rows] == [("eager", None), ("fused", None), ("compiled", None)]


def test_losses_agree_across_modes(profile: Any) -> None:
    assert all(row["first_difference"] is None and row["compared"] > 4 for row in profile["losses"]["rows"])


def test_each_mode_runs_fewer_programs_than_the_one_before(profile: Any) -> None:
    executions = [row["executions"]["value"] for row in profile["programs"]["rows"]]
    assert executions == sorted(executions, reverse=True)
    assert executions[0] > executions[-1]


def test_the_graph_break_is_named_by_its_line(port: Port, profile: Any) -> None:
    places = [(row["place"]["file"], row["place"]["line"]) for row in profile["graph_breaks"]["rows"]]
    lines = (port.folder / "tiny" / "model.py").read_text().splitlines()
    assert places == [("tiny/model.py", 1 + lines.index("        if not torch.isfinite(x).all():"))]
