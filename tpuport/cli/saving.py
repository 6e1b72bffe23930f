"""Files that the options of a command name for what it has to say."""

import os
from pathlib import Path

from tpuport.errors import UsageError


def check(option: str, file: Path | None) -> None:
    """Refuse a file that `option` names where nothing can be written, while nothing is done yet. Raises UsageError."""
    if file is None:
        return
    folder = file.absolute().parent
    if file.is_dir():
        raise UsageError(f"{option} {file}: cannot be written: it is a directory", hint="name a file in it")
    if not folder.is_dir():
        raise UsageError(f"{option} {file}: cannot be written: there is no directory {folder}", hint="make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{option} {file}: cannot be written: no write permission in {folder}")


def save(option: str, file: Path, content: bytes) -> None:
    """Write the file that `option` names, whole or not at all. Raises UsageError."""
    from tpuport.source.write import atomic

    try:
        atomic(file, content)
    except OSError as error:
        raise UsageError(f"{option} {file}: cannot be written: {error.strerror or error}") from None
