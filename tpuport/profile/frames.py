"""Frames of Python stacks: as tracebacks print them, and which are the user's own."""

import re
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from tpuport.profile.records import Frame

_OWN_FRAMES = "tpuport:"
"""How the file names of frames begin that tpuport has put on a stack to mark something."""


_OWN_FILES = f"{Path(__file__).resolve().parent.parent}/"

_TRACEBACK_LINE = re.compile(r'^  File "(.*)", line (\d+), in (.*)$', re.MULTILINE)


def traced_frames(text: str) -> list[Frame]:
    """Return the frames of a traceback that was printed, outermost first."""
    return [Frame(file, int(line), function) for file, line, function in _TRACEBACK_LINE.findall(text)]


def library_prefixes() -> tuple[str, ...]:
    """Return the path prefixes under which this interpreter keeps files that are not the user's."""
    paths = sysconfig.get_paths()
    prefixes = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    prefixes.add(str(Path(__file__).resolve().parent.parent))
    resolved = {str(Path(prefix).resolve()) for prefix in prefixes}
    return tuple(sorted(f"{prefix}/" for prefix in prefixes | resolved))


def is_user_file(file: str, prefixes: Iterable[str]) -> bool:
    """Whether `file` belongs to the user rather than to Python, an installed package or tpuport."""
    if not file or file.startswith(("<", _OWN_FRAMES)) or "/site-packages/" in file or "/dist-packages/" in file:
        return False
    return not any(file.startswith(prefix) for prefix in prefixes)


_RUNTIMES = frozenset({"torch", "torch_tpu", "functorch"})
_PACKAGES = ("/site-packages/", "/dist-packages/")


def package_path(file: str) -> str:
    """Return the path of a file of an installed package from its package on; empty for any other file."""
    found = (file.rpartition(folder) for folder in _PACKAGES)
    return next((below for _, folder, below in found if folder), "")


def is_own_file(file: str) -> bool:
    """Whether `file` belongs to tpuport itself."""
    return file.startswith((_OWN_FRAMES, _OWN_FILES))


def is_runtime_file(file: str) -> bool:
    """Whether `file` belongs to torch or torch_tpu."""
    return package_path(file).partition("/")[0] in _RUNTIMES


def is_model_file(file: str, prefixes: Iterable[str]) -> bool:
    """Whether `file` may hold model code: the user's own, or an installed package's other than torch itself."""
    if below := package_path(file):
        return below.partition("/")[0] not in _RUNTIMES and below.endswith(".py")
    return is_user_file(file, prefixes)


def innermost_user_frame(stack: Iterable[Frame], prefixes: Iterable[str]) -> Frame | None:
    """Return the deepest frame of `stack` (outermost first) that is the user's."""
    known = tuple(prefixes)
    return next((frame for frame in reversed(tuple(stack)) if is_user_file(frame.file, known)), None)
