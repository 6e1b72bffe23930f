"""A stand-in for a machine with two CUDA devices, on the CPU: code that asks for `cuda` runs, and its effects are told.

`floor.cpp` gives torch a CUDA that counts two devices, has a current one and streams, and computes nothing. Above it
runs torch's own code: `torch.cuda`, `torch.accelerator`, `torch.amp` and the dispatcher. A tensor on `cuda` wraps one
on the CPU that does its arithmetic, so that values, gradients, types and autocast are those of torch, and an operation
over two devices raises as it does on CUDA. Not stood in for: the rounding of CUDA's kernels, its random numbers, work
that overlaps, more than one process of NCCL, and compiled code.
"""

import ctypes
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory


def torch_folder() -> Path:
    spec = find_spec("torch")
    return Path(str(spec and spec.origin)).parent


def _build(folder: Path) -> Path:
    """The floor, compiled into a folder."""
    include, library = torch_folder() / "include", folder / "libcuda_floor.so"
    includes = [f"-I{include}", f"-I{include / 'torch/csrc/api/include'}"]
    libraries = [f"-L{torch_folder() / 'lib'}", "-ltorch_cpu", "-lc10"]
    source = Path(__file__).with_name("floor.cpp")
    subprocess.run(
        ["c++", "-shared", "-fPIC", "-std=c++20", "-w", *includes, source, "-o", library, *libraries], check=True
    )
    return library


def load() -> None:
    """Give torch its CUDA.

    Raises:
        RuntimeError: torch is imported already; it looks for CUDA once.
        FileNotFoundError: There is no C++ compiler.
        subprocess.CalledProcessError: The floor does not compile.
    """
    if "torch" in sys.modules:
        raise RuntimeError("torch is imported already")
    for name in ("libc10.so", "libtorch_cpu.so"):
        ctypes.CDLL(str(torch_folder() / "lib" / name), ctypes.RTLD_GLOBAL)
    with TemporaryDirectory() as folder:
        ctypes.CDLL(str(_build(Path(folder))))
    from tests.cuda_stand_in import floor, tensor

    floor.install()
    tensor.install()
