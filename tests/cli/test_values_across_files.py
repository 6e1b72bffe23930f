"""Devices and backends that are written in one file and reach torch in another."""

from pathlib import Path

from tests.command import tpuport

SETTINGS = """\
from dataclasses import dataclass, field


@dataclass
class Config:
    accel: str = "cuda"
    comm: str = field(default="nccl")
    kernel: str = "cuda"


TABLE = {"runs_on": "cuda:0", "other": "cuda"}


def hyperparameters():
    return dict(dist_comm="nccl", implementation="cuda")
"""
TRAIN = """\
import torch
import torch.distributed as dist


def main(config, table, h):
    dist.init_process_group(world_size=1, rank=0, backend=config.comm)
    dist.init_process_group(h.dist_comm)
    model = torch.nn.Linear(2, 2).to(config.accel)
    return model(torch.ones(1, 2, device=table.runs_on))
"""


def migrated(folder: Path) -> str:
    (folder / "settings.py").write_text(SETTINGS)
    done = tpuport("migrate", "--allow-dirty", "--min-torch", "2.11", ".", cwd=folder)
    assert done.code == 0, done.err
    return (folder / "settings.py").read_text()


def test_values_follow_their_names_to_the_file_that_uses_them(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    settings = migrated(tmp_path)
    assert "accel: str = device.type" in settings
    assert "comm: str = field(default=torch.distributed.get_default_backend_for_device(" in settings
    assert '"runs_on": "cuda:0" if torch.cuda.is_available() else device.type' in settings
    assert "dist_comm=torch.distributed.get_default_backend_for_device(device)" in settings
    assert 'kernel: str = "cuda"' in settings
    assert '"other": "cuda"' in settings
    assert 'implementation="cuda"' in settings


def test_a_value_that_no_file_uses_stays(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n")
    assert migrated(tmp_path) == SETTINGS
