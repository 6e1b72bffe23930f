"""Code of PyTorch/XLA: a whole program trains after its migration, and nothing is left half migrated."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from tpuport import catalog, engine
from tpuport.engine import Task
from tpuport.match import findings
from tpuport.model import Outcome, Project, Status
from tpuport.rewrite import rewrite

ROOT = Path(__file__).parents[2]
FIXTURE = ROOT / "fixtures" / "xla_trainer" / "train.py"
STAND_IN = Path(__file__).parent / "torch_xla_stand_in"
RULES = catalog.load().rules
NEWEST = Project(min_torch="2.11")
NUMBER = re.compile(r"-?\d+\.\d+")


def start(command: Sequence[str], folder: Path, path: Path = ROOT, **variables: str) -> subprocess.Popen[str]:
    common = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "PYTHONPATH": str(path), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, **common, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(command: Sequence[str], folder: Path, path: Path = ROOT) -> list[str]:
    """The lines with numbers that a program prints, sorted."""
    process = start(command, folder, path)
    printed, errors = process.communicate(timeout=150)
    assert process.returncode == 0, errors
    return sorted(line for line in printed.splitlines() if NUMBER.search(line))


def values(lines: Sequence[str]) -> list[float]:
    return [float(number) for line in lines for number in NUMBER.findall(line)]


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    script = tmp_path_factory.mktemp("migrated") / "train.py"
    done = rewrite(FIXTURE.read_text(encoding="utf-8"), NEWEST, RULES)
    assert not [finding for finding in done.remaining if finding.rule.startswith("xla-")]
    assert "xla" not in done.text.replace("PyTorch/XLA", "")
    script.write_text(done.text, encoding="utf-8")
    return script


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_a_training_program_prints_the_same_on_the_cpu(migrated: Path, tmp_path: Path) -> None:
    before = run([str(FIXTURE), "--save", "a.pt"], tmp_path, STAND_IN)
    after = run(["-m", "tests.migrate.run_as_rank", "cpu", str(migrated), "--save", "b.pt"], tmp_path)
    assert len(before) == 20
    assert after == before


@pytest.mark.skipif(find_spec("lammps_jax_pjrt_cpu") is None, reason="there is no emulated TPU here")
def test_it_trains_on_the_emulated_tpu_with_the_losses_of_the_cpu(migrated: Path, tmp_path: Path) -> None:
    on_cpu = run(["-m", "tests.migrate.run_as_rank", "cpu", str(migrated)], tmp_path)
    on_tpu = run(["-m", "tests.migrate.run_as_rank", "emulated-tpu", str(migrated)], tmp_path)
    assert [NUMBER.sub("", line) for line in on_tpu] == [NUMBER.sub("", line) for line in on_cpu]
    assert values(on_tpu) == pytest.approx(values(on_cpu), rel=1e-4)
    losses = [value for line in on_tpu if "loss" in line for value in values([line])]
    assert losses[-1] < losses[0] / 2


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_two_processes_end_with_the_weights_of_one(migrated: Path, tmp_path: Path) -> None:
    """The average of the gradients of half a batch in each of two processes is the gradient of the whole batch."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
    command = ["-m", "tests.migrate.run_as_rank", "cpu", str(migrated), "--epochs", "1"]
    ranks = [start(command, tmp_path, **meeting, RANK=rank, LOCAL_RANK=rank) for rank in ("0", "1")]
    printed, errors = zip(*(process.communicate(timeout=150) for process in ranks), strict=True)
    assert [process.returncode for process in ranks] == [0, 0], errors
    two = [line for lines in printed for line in lines.splitlines()]
    one = run(["-m", "tests.migrate.run_as_rank", "cpu", str(migrated), "--epochs", "1"], tmp_path)
    weights = [values([line])[0] for line in two if line.startswith("process")]
    assert len(weights) == 2
    assert weights[0] == weights[1]
    [alone] = [values([line])[0] for line in one if line.startswith("process")]
    assert weights[0] == pytest.approx(alone, rel=1e-3)


COLLECTIVES = """\
import torch
import torch_xla
import torch_xla.core.xla_model as xm


def work(index):
    own = torch.full((1, 2), float(xm.get_ordinal() + 1))
    total = xm.all_reduce(xm.REDUCE_SUM, own)
    mean = xm.all_reduce("sum", own * 2, scale=1.0 / xm.xrt_world_size())
    largest = xm.all_reduce(xm.REDUCE_MAX, own).max().item()
    print("process", own.sum().item(), total.sum().item(), mean.sum().item(), largest, flush=True)
    columns = xm.all_gather(own, dim=-1).shape[1]
    print("rows", xm.all_gather(own).flatten().tolist(), columns, flush=True)


if __name__ == "__main__":
    torch_xla.launch(work)
"""


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_collectives_give_new_tensors_in_two_processes(tmp_path: Path) -> None:
    """As PyTorch/XLA has it: the tensor itself stays, and what is gathered is joined in the order of the processes."""
    done = rewrite(COLLECTIVES, NEWEST, RULES)
    assert "xla" not in done.text
    script = tmp_path / "collectives.py"
    script.write_text(done.text, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
    command = ["-m", "tests.migrate.run_as_rank", "cpu", str(script)]
    ranks = [start(command, tmp_path, **meeting, RANK=rank, LOCAL_RANK=rank) for rank in ("0", "1")]
    printed, errors = zip(*(process.communicate(timeout=150) for process in ranks), strict=True)
    assert [process.returncode for process in ranks] == [0, 0], errors
    for own, lines in zip((2.0, 4.0), printed, strict=True):
        assert values(lines.splitlines()[:1]) == [own, 6.0, 6.0, 2.0]
        assert "rows [1.0, 1.0, 2.0, 2.0] 4" in lines


LISTS = """\
import torch_xla.core.xla_model as xm


def work(model, x):
    {line}
"""


@pytest.mark.parametrize(
    "line",
    [
        "xm.all_reduce(xm.REDUCE_SUM, [x, x])",
        "return xm.all_reduce(xm.REDUCE_SUM, [x, x])",
        "return xm.all_reduce(xm.REDUCE_AND, x)",
        "return xm.all_reduce(xm.REDUCE_SUM, x, scale=0.5)",
        "return xm.all_reduce(xm.REDUCE_SUM, x, groups=[[0, 1]])",
        "return [xm.all_reduce(xm.REDUCE_SUM, y) for y in x]",
        "return x and xm.all_reduce(xm.REDUCE_SUM, x)",
        "return xm.all_reduce(xm.REDUCE_SUM, x) + xm.all_reduce(xm.REDUCE_MAX, x)",
        "return xm.all_gather(x.mean(), 0)",
        "return xm.reduce_scatter(xm.REDUCE_SUM, x, 1.0, 0, 2)",
    ],
)
def test_a_collective_that_is_not_certain_stays_with_its_counterpart(line: str) -> None:
    source = LISTS.format(line=line)
    done = rewrite(source, NEWEST, RULES)
    assert done.text == source
    told = {finding.rule: finding.reason for finding in done.remaining}
    assert "torch.distributed." in told["xla-collectives"]
    assert "xla-namespace" not in told


USES = """\
import torch_xla.core.xla_model as xm


def train(model, optimizer):
    model.to(xm.xla_device())
    xm.mark_step()
    {stays}
"""


@pytest.mark.parametrize(
    "stays",
    [
        "xm.all_reduce(xm.REDUCE_SUM, model.loss)",
        "xm.something_new()",
        "return xm.xla_device(2)",
        "return xm.xla_device().type == 'xla'",
        "xm.mark_step()  # tpuport: ignore[xla-sync]",
        "return [xm.mark_step]",
    ],
)
def test_a_file_moves_whole_or_not_at_all(stays: str) -> None:
    source = USES.format(stays=stays)
    assert rewrite(source, NEWEST, RULES).text == source
    found = findings(source, NEWEST, RULES)
    assert not any(finding.fixable for finding in found)
    assert {finding.span.line for finding in found if finding.ignored is None} >= {1, 5, 6}


def test_a_rule_left_out_holds_the_file() -> None:
    source = USES.format(stays="return model")
    assert rewrite(source, NEWEST, RULES).text != source
    without = tuple(rule for rule in RULES if rule.name != "xla-sync")
    assert rewrite(source, NEWEST, without).text == source


def outcomes(files: dict[str, str], folder: Path) -> dict[str, Outcome]:
    for name, source in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(source, encoding="utf-8")
    task = Task(RULES, NEWEST, fix=True)
    paths = sorted(folder.rglob("*.py"))
    settled = engine.reconsidered(list(engine.run(paths, task)), task)
    return {str(outcome.path.relative_to(folder)): outcome for outcome in settled}


MOVES = "import torch_xla.core.xla_model as xm\n\n\ndef device():\n    return xm.xla_device()\n"
STAYS = "import torch_xla.core.xla_model as xm\n\n\ndef total(x):\n    return xm.all_to_all(x, 0, 1, 2)\n"


@pytest.mark.parametrize(
    "between",
    [
        {"pkg/main.py": "from pkg import model, sums\n"},
        {"pkg/main.py": "from . import (\n    model,\n    sums,\n)\n"},
        {"pkg/main.py": "import pkg.model\nimport helper\n", "helper.py": "from pkg.sums import total\n"},
    ],
)
def test_files_that_go_together_move_together(between: dict[str, str], tmp_path: Path) -> None:
    done = outcomes({"pkg/model.py": MOVES, "pkg/sums.py": STAYS, "other.py": MOVES, **between}, tmp_path)
    assert done["pkg/model.py"].status is Status.FINDINGS
    assert all(f"{Path('pkg', 'sums.py')}:5" in f.reason for f in done["pkg/model.py"].findings)
    assert done["other.py"].status is Status.CHANGED


def test_comments_in_a_launch_hold_it_with_the_reason() -> None:
    source = (
        "import torch_xla\n\n\ndef train(index):\n    print(index)\n\n\ntorch_xla.launch(\n    train,\n"
        "    args=(),  # nothing to hand on\n)\n"
    )
    [launch] = [finding for finding in findings(source, NEWEST, RULES) if finding.rule == "xla-launch"]
    assert "comment" in launch.reason
    assert rewrite(source, NEWEST, RULES).text == source


@pytest.mark.parametrize(("seed", "moves"), [("", False), ("torch.manual_seed(1)\n", True)])
def test_forked_processes_are_seeded_alike_or_stay(seed: str, moves: bool) -> None:
    source = (
        f"import torch\nimport torch_xla\n\n{seed}\n\ndef train(index):\n    print(index)\n\n\n"
        'torch_xla.launch(train, start_method="fork")\n'
    )
    assert (rewrite(source, NEWEST, RULES).text != source) is moves
