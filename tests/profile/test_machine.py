import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.profile.command import tpuport
from tpuport.errors import UsageError
from tpuport.profile import machine
from tpuport.profile.plan import Device


def pci_device(folder: Path, name: str, vendor: str, device: str) -> None:
    (folder / name).mkdir()
    (folder / name / "vendor").write_text(f"{vendor}\n")
    (folder / name / "device").write_text(f"{device}\n")


def test_tpus_are_found_by_their_pci_ids(tmp_path: Path) -> None:
    pci_device(tmp_path, "00", "0x8086", "0x006f")
    pci_device(tmp_path, "01", "0x1ae0", "0x006f")
    pci_device(tmp_path, "02", "0x1ae0", "0x006f")
    pci_device(tmp_path, "03", "0x1ae0", "0xffff")
    assert machine.attached_tpus(tmp_path) == ("v6e", "v6e")


def test_no_pci_bus_means_no_tpu(tmp_path: Path) -> None:
    assert machine.attached_tpus(tmp_path / "missing") == ()


def test_without_torch_the_install_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "installed", lambda _package: None)
    with pytest.raises(UsageError) as raised:
        machine.choose_device(None)
    assert raised.value.hint == "Install it with: pip install 'tpuport[profile]'"


def test_missing_emulation_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "installed", lambda package: None if package == "torch_tpu" else "1")
    with pytest.raises(UsageError, match="torch_tpu not installed") as raised:
        machine.choose_device(Device.EMULATED_TPU)
    assert "pip install 'tpuport[profile]'" in raised.value.hint


def test_a_tpu_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "attached_tpus", lambda: ())
    with pytest.raises(UsageError, match="no TPU is attached"):
        machine.choose_device(Device.TPU)


def test_an_attached_tpu_is_the_first_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "attached_tpus", lambda: ("v6e",))
    assert machine.choose_device(None) is Device.TPU


def test_doctor_names_every_ability(tmp_path: Path) -> None:
    result = tpuport("doctor", "--json", cwd=tmp_path)
    assert result.code == 0
    document = json.loads(result.out)
    assert list(document["abilities"]) == ["tpu", "emulated-tpu", "tpu-compiler", "cuda", "cpu"]
    assert document["abilities"]["emulated-tpu"]["available"]
    assert "v4, v5e, v5p, v6e, tpu7x" in document["abilities"]["tpu-compiler"]["detail"]
    assert document["versions"]["torch_tpu"] == "0.2.0"


def test_doctor_prints_text(tmp_path: Path) -> None:
    result = tpuport("doctor", cwd=tmp_path)
    assert result.code == 0
    assert "emulated TPU  yes" in result.out


def test_verbose_version_names_what_a_bug_report_needs(tmp_path: Path) -> None:
    result = tpuport("--version", "--verbose", cwd=tmp_path)
    assert result.code == 0
    assert [line.split()[0] for line in result.out.splitlines()[:3]] == ["tpuport", "python", "platform"]


def test_the_command_line_never_imports_torch(tmp_path: Path) -> None:
    code = "import tpuport.cli.app, sys; sys.exit(bool({'torch', 'torch_tpu', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False).returncode == 0
