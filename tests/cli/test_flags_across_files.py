"""A test for CUDA whose flag decides, in another file, whether code without a counterpart runs."""

from pathlib import Path

import pytest

from tests.command import tpuport

MAIN = """\
import torch
from train import train

use_cuda = torch.cuda.is_available()
model = torch.nn.Linear(2, 2)
if use_cuda:
    model.cuda()
train(model, use_cuda)
"""
TRAIN = """\
import torch


def train(model, use_cuda):
    if use_cuda:
        BODY
"""


def migrated(folder: Path, body: str) -> tuple[str, str]:
    (folder / "main.py").write_text(MAIN)
    (folder / "train.py").write_text(TRAIN.replace("BODY", body))
    done = tpuport("migrate", "--allow-dirty", ".", cwd=folder)
    assert done.code == 0, done.err
    return (folder / "main.py").read_text(), done.out


def test_stays_with_the_other_file(tmp_path: Path) -> None:
    main, printed = migrated(tmp_path, "large = torch.cuda.get_device_capability()[0] >= 8")
    assert main == MAIN
    assert "train.py:6 needs CUDA under a variable of the same name, use_cuda" in printed


@pytest.mark.parametrize("body", ["model.cuda()", "print('on the GPU')"])
def test_moves_with_the_other_file(tmp_path: Path, body: str) -> None:
    main, _ = migrated(tmp_path, body)
    assert "use_cuda = torch.accelerator.is_available()" in main
