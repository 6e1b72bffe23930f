"""Put new bytes in a file's place so that the file is, at every moment, the old one or the new one."""

import os
import tempfile
from pathlib import Path

from tpuport.source import text


class Refused(Exception):
    """A file that was left as it was; the message says why."""


def replace(path: Path, old: str, new: str, root: Path, max_size: int = text.MAX_SIZE) -> None:
    """Write `new` to `path`, which must still read as `old`; encoding, line endings, mode and owner stay.

    A symbolic link stays a link: its target is written, if that lies below `root`.
    Raises Refused where the file is not what it was or may not be written, with nothing changed.
    """
    target = Path(os.path.realpath(path))
    if path.is_symlink() and not target.is_relative_to(os.path.realpath(root)):
        raise Refused(f"a symbolic link that leads out of {root}")
    try:
        before = target.stat()
        source = text.read(target, max_size)
    except text.Unreadable as error:
        raise Refused(error.outcome.reason) from None
    except OSError as error:
        raise Refused(f"cannot be read: {error.strerror or error}") from None
    if source.text != old:
        raise Refused("changed on disk while tpuport was at work; run it again")
    if not os.access(target, os.W_OK):
        raise Refused("cannot be written: no write permission")
    try:
        content = source.encode(new)
    except UnicodeEncodeError as error:
        raise Refused(f"the new text cannot be encoded as {source.encoding}: {error.reason}") from None
    try:
        atomic(target, content, before)
    except OSError as error:
        raise Refused(f"cannot be written: {error.strerror or error}") from None


def atomic(target: Path, content: bytes, like: os.stat_result | None = None) -> None:
    """Write `content` to `target` through a temporary file beside it. Raises OSError with `target` as it was.

    `like` is the status of the file to be replaced: mode and owner come from it, and `target` must still have it.
    """
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tpuport-tmp")
    replaced = False
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if like is None:
                os.chmod(name, 0o666 & ~_umask())
            else:
                _copy_owner(name, like)
                os.chmod(name, like.st_mode & 0o7777)
            os.fsync(file.fileno())
        if like is not None and _identity(os.stat(target)) != _identity(like):
            raise OSError("changed on disk while tpuport was at work; run it again")
        os.replace(name, target)
        replaced = True
    finally:
        if not replaced:
            os.unlink(name)
    _sync_directory(target.parent)


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _copy_owner(name: str, like: os.stat_result) -> None:
    own = os.stat(name)
    if (own.st_uid, own.st_gid) == (like.st_uid, like.st_gid) or not hasattr(os, "chown"):
        return
    try:
        os.chown(name, like.st_uid, like.st_gid)
    except PermissionError:
        return  # only root may give files away; the content matters more than the owner


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_directory(directory: Path) -> None:
    """Make the rename itself last through a power cut, where directories can be opened."""
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        return
    finally:
        os.close(descriptor)
