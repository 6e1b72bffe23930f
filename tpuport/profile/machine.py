"""What this machine can profile on. Nothing here imports torch: with torch_tpu installed, that alone can hang."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tpuport.errors import TpuportError, UsageError
from tpuport.profile.chips.compiler import PACKAGES
from tpuport.profile.chips.specs import CHIPS
from tpuport.profile.plan import Device

INSTALL_PROFILE = "pip install 'tpuport[profile]'"
_EMULATION_PACKAGES = ("torch", "torch_tpu", "lammps-jax-pjrt-cpu")
_GOOGLE_PCI_VENDOR = "0x1ae0"
_TPU_PCI_DEVICES = {"0x005e": "v4", "0x0062": "v5p", "0x0063": "v5e", "0x006f": "v6e", "0x0076": "tpu7x"}
_PROBE = """
import json, torch
cuda = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
print(json.dumps({"torch": torch.__version__, "cuda": cuda}))
"""
_PROBE_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Ability:
    """One thing that the machine can or can't do; `detail` says what, or what is missing and how to get it."""

    name: str
    available: bool
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class TorchProbe:
    """What torch says of itself in a process of its own; `error` is empty when it could be asked."""

    version: str
    cuda_devices: tuple[str, ...]
    error: str = ""


def installed(package: str) -> str | None:
    """Return the version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def missing(packages: Iterable[str]) -> tuple[str, ...]:
    """Return those of `packages` that are not installed."""
    return tuple(package for package in packages if installed(package) is None)


def attached_tpus(pci: Path = Path("/sys/bus/pci/devices")) -> tuple[str, ...]:
    """Return the chips on the PCI bus, one entry a device, by name."""
    try:
        devices = sorted(pci.iterdir())
    except OSError:
        return ()
    ids = ((_read(device / "vendor"), _read(device / "device")) for device in devices)
    return tuple(
        _TPU_PCI_DEVICES[device]
        for vendor, device in ids
        if vendor == _GOOGLE_PCI_VENDOR and device in _TPU_PCI_DEVICES
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def probe_torch() -> TorchProbe:
    """Ask torch for its version and CUDA devices, in a process of its own and within a time limit."""
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _PROBE],
            capture_output=True,
            text=True,
            timeout=_PROBE_LIMIT_S,
            env=environment,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return TorchProbe("", (), f"importing torch took more than {_PROBE_LIMIT_S:g} s")
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        return TorchProbe("", (), last[0])
    answer = json.loads(done.stdout.splitlines()[-1])
    return TorchProbe(answer["torch"], tuple(answer["cuda"]))


def has_cuda_driver() -> bool:
    """Whether an NVIDIA driver is there: without one, asking torch is no use."""
    return any(Path(path).exists() for path in ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg"))


def require_profile_extra() -> None:
    """Raise UsageError, with the command that helps, when torch is not installed."""
    if installed("torch") is None:
        raise UsageError(
            "tpuport profile needs torch, which is not installed", hint=f"Install it with: {INSTALL_PROFILE}"
        )


def choose_device(wanted: Device | None) -> Device:
    """Return `wanted` if this machine has it, or the best that it has when None.

    Raises UsageError for a device that can't be used here, TpuportError when torch itself can't be imported.
    """
    require_profile_extra()
    if wanted is not None:
        reason = _unusable(wanted)
        if reason:
            raise UsageError(f"--device {wanted.value} can't be used here: {reason[0]}", hint=reason[1])
        return wanted
    return next((device for device in Device if _unusable(device) is None), Device.CPU)


def _unusable(device: Device) -> tuple[str, str] | None:
    """Return why `device` can't be used and what to do about it, or None when it can."""
    if device is Device.TPU:
        if not attached_tpus():
            return "no TPU is attached to this machine", "Use --device emulated-tpu."
        return _lacks(("torch", "torch_tpu", "libtpu"))
    if device is Device.EMULATED_TPU:
        if sys.platform != "linux":
            return f"the emulated TPU runs on Linux only, not on {sys.platform}", "Use --device cpu."
        return _lacks(_EMULATION_PACKAGES)
    if device is Device.CUDA:
        if not has_cuda_driver():
            return "no NVIDIA GPU is attached to this machine", "Use --device auto."
        probe = probe_torch()
        if probe.error:
            raise TpuportError(f"torch can't be imported: {probe.error}", hint="Run `tpuport doctor`.")
        if not probe.cuda_devices:
            return f"torch {probe.version} sees no CUDA device", "Install a CUDA build of torch."
    return None


def _lacks(packages: tuple[str, ...]) -> tuple[str, str] | None:
    absent = missing(packages)
    if not absent:
        return None
    return f"{' and '.join(absent)} not installed", f"Install with: {INSTALL_PROFILE}"


def abilities() -> tuple[Ability, ...]:
    """Return everything that `tpuport doctor` reports, TPU first."""
    torch = TorchProbe("", (), "torch is not installed") if installed("torch") is None else probe_torch()
    return (_tpu(), _emulated_tpu(), _compiler(), _cuda(torch), _cpu(torch))


def _tpu() -> Ability:
    chips = attached_tpus()
    if not chips:
        return Ability("tpu", False, "no TPU on the PCI bus")
    lacking = _lacks(("torch", "torch_tpu", "libtpu"))
    found = f"{len(chips)} × {chips[0]}"
    return Ability("tpu", False, f"{found}, but {lacking[0]}", lacking[1]) if lacking else Ability("tpu", True, found)


def _emulated_tpu() -> Ability:
    reason = _unusable(Device.EMULATED_TPU)
    if reason:
        return Ability("emulated-tpu", False, *reason)
    return Ability("emulated-tpu", True, f"torch_tpu {installed('torch_tpu')} over XLA's CPU backend")


def _compiler() -> Ability:
    lacking = _lacks(PACKAGES)
    if lacking:
        return Ability("tpu-compiler", False, *lacking)
    return Ability("tpu-compiler", True, f"libtpu {installed('libtpu')} compiles for {', '.join(CHIPS)}")


def _cuda(torch: TorchProbe) -> Ability:
    if torch.error:
        return Ability("cuda", False, torch.error)
    if not torch.cuda_devices:
        return Ability("cuda", False, f"torch {torch.version} sees no CUDA device")
    return Ability("cuda", True, ", ".join(torch.cuda_devices))


def _cpu(torch: TorchProbe) -> Ability:
    if torch.error:
        return Ability("cpu", False, torch.error, f"Install with: {INSTALL_PROFILE}")
    return Ability("cpu", True, f"torch {torch.version}, {os.cpu_count()} cores")
