"""What a bug report needs to know of this installation."""

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from tpuport import __version__

PACKAGES = (
    "typer", "rich", "libcst", "torch", "torch_tpu", "libtpu", "pypjrt", "lammps-jax-pjrt-cpu", "jaxlib", "numpy",
    "tensorboard-plugin-profile", "jinja2", "pygal",
)  # fmt: skip
"""What tpuport works with, whether installed or not."""


def collect() -> dict[str, str | None]:
    """Return every version by name; None for what is not installed. Imports none of the packages."""
    found: dict[str, str | None] = {
        "tpuport": __version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "executable": sys.executable,
    }
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def report() -> str:
    """Return one line for each version."""
    found = collect()
    width = max(map(len, found))
    return "\n".join(f"{name:<{width}}  {value or 'not installed'}" for name, value in found.items())
