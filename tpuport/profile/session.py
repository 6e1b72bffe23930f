"""A session folder: what was planned, how each mode's process ended, and the records they wrote."""

import platform
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tpuport import __version__
from tpuport.errors import TpuportError
from tpuport.profile.chips.estimates import Compiled
from tpuport.profile.chips.pool import load_compiled
from tpuport.profile.chips.specs import CHIPS as CHIP_SPECS
from tpuport.profile.codec import DecodeError, decode, encode
from tpuport.profile.contents import Contents, load_contents
from tpuport.profile.layout import (
    BATCHES,
    CRASH_LOG,
    REFERENCE,
    SESSION,
    SOURCES,
    STDERR_LOG,
    rank_folder,
    read_json,
    run_folder,
    write_json,
)
from tpuport.profile.plan import Mode, Plan
from tpuport.profile.records import FILE_NAME, Frame, Records, read_records
from tpuport.profile.runner import ProcessExit
from tpuport.profile.sources import Sources

VERSION = 1
_STDERR_TAIL_LINES = 12
_STDERR_TAIL_BYTES = 64 * 1024
_PACKAGES = ("torch", "torch_tpu", "libtpu", "pypjrt", "lammps-jax-pjrt-cpu", "numpy")
_RUNTIME_LINE = re.compile(r"^([IWEF]\d{4} |    @ )")
"""What torch_tpu's runtime logs and the stack of its crashes."""
_FAILED_EXECUTION = re.compile(r"\] ExecutionTask failed: (?P<what>.*(?:\n(?!=== |[IWEF]\d{4} |\s*$).*)*)")
FOLLOWS_FAILURE = "a required argument is in a failed state"
"""What torch_tpu says of everything that uses the result of an execution that failed."""
_FATAL_LINE = re.compile(r"^F\d{4} .*? (?P<where>\S+:\d+)\] (?P<what>.*)$", re.MULTILINE)
_FALLBACK = re.compile(rb"operator 'aten::(\w+)[\w.]*' is not implemented for TPU\. Falling back to CPU")
_MIXED_TYPES = re.compile(rb'loc\("(\w+)/\w+".*: error: .* op requires compatible element types')
_FAULT_LINE = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)$')


@dataclass(frozen=True, slots=True)
class RunHeader:
    """How one process ended."""

    mode: Mode
    exit: ProcessExit
    number: int = 1
    """Which of the mode's runs this is."""
    rank: int = 0


@dataclass(frozen=True, slots=True)
class SessionHeader:
    """What session.json holds; it is rewritten after each mode, so a session is readable at any time."""

    version: int
    tpuport: str
    created: str
    versions: dict[str, str]
    plan: Plan
    runs: tuple[RunHeader, ...] = ()
    reference: RunHeader | None = None
    """The run on the CPU in float32, if one was asked for."""

    def with_run(self, mode: Mode, number: int, ranks: Iterable[ProcessExit]) -> "SessionHeader":
        """Return the header with one more run of a mode, and how each of its ranks ended."""
        added = (RunHeader(mode, exit_, number, rank) for rank, exit_ in enumerate(ranks))
        return replace(self, runs=(*self.runs, *added))

    def with_reference(self, mode: Mode, ranks: Iterable[ProcessExit]) -> "SessionHeader":
        """Return the header with the run on the CPU in float32, by its first rank."""
        return replace(self, reference=RunHeader(mode, next(iter(ranks))))


@dataclass(frozen=True, slots=True)
class Run:
    """One process: how it ended and all it wrote."""

    mode: Mode
    exit: ProcessExit
    records: Records
    crash_stacks: tuple[tuple[Frame, ...], ...] = ()
    """Python stacks at a fatal signal or at the time limit, each outermost first: the thread concerned, then the rest.

    The runtime compiles on threads of its own, so the thread concerned need not be the script's.
    """
    stderr_tail: tuple[str, ...] = ()
    failed_execution: str = ""
    """What torch_tpu's runtime logged of the first execution that failed; the script may not have seen it."""
    fallbacks: tuple[str, ...] = ()
    """Operations that torch_tpu's runtime logged to have run on the CPU, without their overloads."""
    mixed_types: str = ""
    """The first operation that torch_tpu could not lower because of inputs of different types."""
    number: int = 1
    """Which of the mode's runs this is, from 1."""
    rank: int = 0
    fatal: str = ""
    """What the runtime logged when it ended the process itself: source file, line and message."""


@dataclass(frozen=True, slots=True)
class Session:
    """A session as it was saved."""

    folder: Path
    header: SessionHeader
    runs: tuple[Run, ...]
    """The first run of each mode, and of its ranks the first: what the report tells of a mode is of this process."""
    compiled: tuple[Compiled, ...] = ()
    """What the TPU compiler said of the counted programs, for every chip that was asked for."""
    sources: Sources = field(default_factory=Sources)
    reference: Run | None = None
    """The run on the CPU in float32, if one was asked for."""
    others: tuple[Run, ...] = ()
    """Further runs, and further ranks."""
    contents: dict[str, Contents] = field(default_factory=dict)
    """What the counted programs hold, by their SHA-256."""
    batches: "dict[int, Session]" = field(default_factory=dict)
    """Runs that look for the largest batch, by their batch size."""

    @property
    def plan(self) -> Plan:
        """What was to be measured."""
        return self.header.plan


def new_header(plan: Plan) -> SessionHeader:
    """Return the header of a session in which nothing has run yet."""
    versions = {"python": platform.python_version(), "platform": f"{sys.platform} {platform.machine()}"}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return SessionHeader(VERSION, __version__, datetime.now(UTC).isoformat(timespec="seconds"), versions, plan)


def save(folder: Path, header: SessionHeader) -> None:
    """Write session.json."""
    write_json(folder / SESSION, encode(header))


def load(folder: Path) -> Session:
    """Read a session folder.

    Raises TpuportError when it is none, is damaged, or was written in a version that this tpuport can't read.
    """
    path = folder / SESSION
    if not folder.exists():
        raise TpuportError(
            f"{folder} does not exist", hint="Name the folder that `tpuport profile` wrote; it says which at its end."
        )
    if not path.is_file():
        raise TpuportError(
            f"{folder} is not a tpuport session: it has no {SESSION}",
            hint="Name the folder that `tpuport profile` wrote; it says which at its end.",
        )
    try:
        data = read_json(path)
    except (OSError, ValueError) as error:
        raise TpuportError(f"{path} cannot be read: {error}", hint="Profile again to get a new session.") from None
    found = data.get("version") if isinstance(data, dict) else None
    if found != VERSION:
        newer = isinstance(found, int) and found > VERSION
        raise TpuportError(
            f"{path} has version {found!r}; this tpuport reads version {VERSION}",
            hint="A newer tpuport wrote it: update this one, or profile again."
            if newer
            else "Render it with the tpuport that wrote it, or profile again.",
        )
    try:
        header = decode(SessionHeader, data)
    except DecodeError as error:
        raise TpuportError(f"{path} is damaged: {error}", hint="Profile again to get a new session.") from None
    try:
        return _read(folder, header)
    except OSError as error:
        raise TpuportError(
            f"{error.filename or folder} cannot be read: {error.strerror}", hint="Profile again to get a new session."
        ) from None


def _read(folder: Path, header: SessionHeader) -> Session:
    runs = [
        _load_run(rank_folder(run_folder(folder, run.mode.value, run.number), run.rank), run) for run in header.runs
    ]
    return Session(
        folder,
        header,
        tuple(run for run in runs if (run.number, run.rank) == (1, 0)),
        load_compiled(folder, CHIP_SPECS),
        Sources.load(folder / SOURCES, Path(header.plan.directory)),
        None if header.reference is None else _load_run(folder / REFERENCE, header.reference),
        tuple(run for run in runs if (run.number, run.rank) != (1, 0)),
        load_contents(folder),
        _load_batches(folder / BATCHES),
    )


def _load_batches(folder: Path) -> dict[int, Session]:
    found = folder.iterdir() if folder.is_dir() else ()
    return {int(path.name): load(path) for path in found if path.name.isdecimal() and (path / SESSION).is_file()}


def _load_run(folder: Path, header: RunHeader) -> Run:
    records = read_records(folder / FILE_NAME)
    stderr = folder / STDERR_LOG
    log = stderr.read_bytes() if stderr.is_file() else b""
    stacks = _crash_stacks(folder / CRASH_LOG)
    return Run(
        mode=header.mode,
        exit=header.exit,
        records=records,
        crash_stacks=stacks,
        stderr_tail=_tail(log),
        failed_execution=_failed_execution(log),
        number=header.number,
        rank=header.rank,
        fatal=_fatal(log),
        fallbacks=_fallbacks(log),
        mixed_types=_mixed_types(log),
    )


def _crash_stacks(path: Path) -> tuple[tuple[Frame, ...], ...]:
    """Read what faulthandler has written: one section a thread, innermost frame first."""
    if not path.is_file():
        return ()
    sections: list[tuple[bool, list[Frame]]] = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith(("Thread ", "Current thread ", "Stack ")):
            sections.append((not line.startswith("Thread "), []))
        elif sections and (match := _FAULT_LINE.match(line)):
            sections[-1][1].append(Frame(match["file"], int(match["line"]), match["function"]))
    current_first = sorted(sections, key=lambda section: not section[0])
    return tuple(tuple(reversed(frames)) for _, frames in current_first if frames)


def _failed_execution(log: bytes) -> str:
    text = "\n".join(log.decode("utf-8", errors="replace").splitlines())
    found = _FAILED_EXECUTION.finditer(text)
    first = next((match["what"] for match in found if FOLLOWS_FAILURE not in match["what"]), "")
    return " ".join(first.rpartition("failed with: ")[2].split())


def _fatal(log: bytes) -> str:
    match = _FATAL_LINE.search(log.decode("utf-8", errors="replace"))
    return "" if match is None else f"{match['where']}: {match['what']}"


def _fallbacks(log: bytes) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.decode() for name in _FALLBACK.findall(log)))


def _mixed_types(log: bytes) -> str:
    match = _MIXED_TYPES.search(log)
    return match[1].decode() if match else ""


def _tail(log: bytes) -> tuple[str, ...]:
    text = log[-_STDERR_TAIL_BYTES:].decode("utf-8", errors="replace")
    lines = [line for line in text.splitlines() if line.strip() and not _RUNTIME_LINE.match(line)]
    return tuple(lines[-_STDERR_TAIL_LINES:])
