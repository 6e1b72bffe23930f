"""Scripts of the libraries around PyTorch: written for CUDA, migrated, they train on the emulated TPU.

Losses are compared with those of the script as it was, on the CPU.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures" / "frameworks"
SECONDS = 150
ENVIRONMENT = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}


@dataclass(frozen=True, slots=True)
class Run:
    losses: list[float]
    said: dict[str, str]


def run(folder: Path, *command: str) -> Run:
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr[-2000:]
    pairs = [line.split() for line in done.stdout.splitlines() if line.count(" ") == 1]
    return Run([float(value) for key, value in pairs if key == "loss"], {k: v for k, v in pairs if k != "loss"})


def tpuport(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "tpuport", *arguments]
    return subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=SECONDS).stdout


def copied(name: str, folder: Path, *needed: str) -> Path:
    for library in (*needed, "torch_tpu", "lammps_jax_pjrt_cpu"):
        if find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    script = folder / f"{name}.py"
    script.write_text((FIXTURES / f"{name}.py").read_text())
    return script


def on_tpu(folder: Path, script: Path) -> Run:
    return run(folder, "-m", "tests.frameworks.run_script", str(script))


def test_accelerate(tmp_path: Path) -> None:
    script = copied("accelerate_loop", tmp_path, "accelerate")
    cpu = run(tmp_path, str(script))
    tpuport(tmp_path, "migrate", "--allow-dirty", str(script))
    tpu = on_tpu(tmp_path, script)
    assert (cpu.said["device"], tpu.said["device"]) == ("cpu", "tpu")
    assert tpu.losses == pytest.approx(cpu.losses, rel=1e-4)
    assert tpu.losses[-1] < tpu.losses[0] / 2


def test_trainer_of_transformers(tmp_path: Path) -> None:
    script = copied("trainer", tmp_path, "transformers", "accelerate")
    cpu = run(tmp_path, str(script))
    tpuport(tmp_path, "migrate", "--allow-dirty", str(script))
    tpu = on_tpu(tmp_path, script)
    assert tpu.said == {"tied": "True", "device": "tpu"}
    assert tpu.losses == pytest.approx(cpu.losses, rel=0.03)  # bfloat16 there, float32 here
    assert tpu.losses[-1] < tpu.losses[0] - 0.1


def test_lightning(tmp_path: Path) -> None:
    script = copied("lightning_module", tmp_path, "lightning")
    asked = script.read_text()
    script.write_text(asked.replace('accelerator="gpu"', 'accelerator="cpu"'))
    cpu = run(tmp_path, str(script))
    script.write_text(asked)
    tpuport(tmp_path, "migrate", "--allow-dirty", str(script))
    migrated, tpu = run(tmp_path, str(script)), on_tpu(tmp_path, script)
    assert (cpu.said["device"], migrated.said["device"], tpu.said["device"]) == ("cpu", "cpu", "tpu")
    assert migrated.losses == cpu.losses
    assert tpu.losses == pytest.approx(cpu.losses, rel=1e-4)
    assert tpu.losses[-1] < tpu.losses[0] / 2


def test_lightning_with_mixed_precision(tmp_path: Path) -> None:
    """What asked for float16 computes in bfloat16 there, as Lightning has it on a CPU."""
    script = copied("lightning_module", tmp_path, "lightning")
    asked = script.read_text().replace("devices=1,", 'devices=1,\n        precision="16-mixed",')
    asked = asked.replace('print("device"', 'print("autocast", trainer.precision_plugin.device)\n    print("device"')
    script.write_text(asked)
    tpuport(tmp_path, "migrate", "--allow-dirty", str(script))
    assert 'precision="16-mixed"' in script.read_text()
    cpu, tpu = run(tmp_path, str(script)), on_tpu(tmp_path, script)
    assert (cpu.said, tpu.said) == ({"autocast": "cpu", "device": "cpu"}, {"autocast": "tpu", "device": "tpu"})
    assert tpu.losses == pytest.approx(cpu.losses, rel=0.03)
    assert tpu.losses[-1] < tpu.losses[0] / 2
