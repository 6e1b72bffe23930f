"""Where the program lies that the command line names. Nothing of the user's is imported or executed here."""

import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from tpuport.errors import UsageError
from tpuport.profile.notebooks import SUFFIX, read_cells

_NAME_IT = "Name the Python script or the notebook to run, or a module with -m."


def check_script(script: Path) -> None:
    """Raise UsageError unless `script` can be a Python script or is a notebook with code in it."""
    if script.is_dir():
        raise UsageError(f"{script} is a directory", hint=_NAME_IT)
    try:
        with script.open("rb") as file:
            head = file.read(4096)
        cells = read_cells(script) if script.suffix == SUFFIX else None
    except OSError as error:
        raise UsageError(f"{script} can't be read: {error.strerror}", hint=_NAME_IT) from None
    if cells is not None and not cells:
        raise UsageError(f"{script} has no code cell")
    if b"\0" in head:
        raise UsageError(f"{script} is not a Python script: it holds binary data")


def find_module(name: str, directory: Path) -> Path:
    """Return the file that `python -m NAME` would run in `directory`.

    Raises UsageError when there is none, and says which part of the name is missing.
    """
    path: list[str] | None = [str(directory), *sys.path]
    spec: ModuleSpec | None = None
    found: list[str] = []
    for part in name.split("."):
        if path is None:
            raise UsageError(f"{'.'.join(found)} is a module, not a package: it has no {part!r}", hint=_HINT)
        spec = PathFinder.find_spec(".".join((*found, part)), path)
        if spec is None:
            where = f"in the package {'.'.join(found)}" if found else f"in {directory} or on Python's path"
            raise UsageError(f"there is no module {part!r} {where}", hint=_HINT)
        found.append(part)
        path = spec.submodule_search_locations
    if path is not None:
        spec = PathFinder.find_spec(f"{name}.__main__", path)
        if spec is None:
            raise UsageError(f"{name} is a package without a __main__, which can't be run", hint=_HINT)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise UsageError(f"{name} is not a module of Python source", hint=_HINT)
    return Path(spec.origin).absolute()


_HINT = "Give the name as after `python -m`, and start tpuport in the same directory."
