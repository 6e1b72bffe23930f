"""What a child process writes while it runs: one JSON object a line, each a typed, versioned envelope.

A record is on disk before the script goes on, so that a process that dies leaves all it had measured.
A line that is not understood (newer version, unknown kind, cut off by a crash) is counted, never an error.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_args

from tpuport.profile.codec import DecodeError, decode, encode
from tpuport.profile.digests import Digest
from tpuport.profile.phases import StepPhase

VERSION = 1
FILE_NAME = "records.jsonl"
WARMUP_LIMIT = "warmup-limit"
"""Code of the note that says that warm-up ended without a step that compiles nothing."""
LOST_GRADIENTS = "lost-gradients"
"""Code of the note that a module is compiled whose gradients torch_tpu loses then."""
NO_TRACE = "no-trace"
"""Code of the note that says why a mode was not traced."""


INDEXING = "indexing by a tensor"
"""How a wait is called that an index made, be it a mask, a tensor of indices or a number."""


class Phase(StrEnum):
    """What a step is for."""

    WARMUP = "warmup"
    COUNTED = "counted"
    WATCHED = "watched"
    """One step of eager mode in which every operation is waited for, to see which programs it starts."""
    TIMED = "timed"


class CpuReason(StrEnum):
    """Why an operation on the CPU is told."""

    FALLBACK = "fallback"
    """The device has no kernel for it, and torch_tpu's fallback to the CPU is on: a private switch, off at first."""
    FROM_DEVICE = "from-device"
    """It computes with values that came from the device in the same step."""
    IN_MODEL = "in-model"
    """A model computes it, on tensors that are on the CPU."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a Python stack."""

    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class Started:
    """The child is ready to run the script."""

    kind: ClassVar[str] = "started"
    torch: str
    device: str
    """The device that torch.accelerator names, or `cpu`."""
    library_prefixes: tuple[str, ...]
    """Path prefixes of Python's, torch's and tpuport's own files: frames there are not the user's."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the script has ended."""

    kind: ClassVar[str] = "step"
    index: int
    phase: Phase
    seconds: float
    """From the end of the step before (for the first, from the start of the script), device idle at both ends."""
    compiled: int
    """Programs and graphs compiled during the step."""
    losses: tuple[float, ...] = ()
    """Scalars that backward() started from, in order."""
    executions: dict[int, int] | None = None
    """Counted steps only: times each program (by its index) was executed."""


@dataclass(frozen=True, slots=True)
class StepSourceChosen:
    """What marks the end of a step in this script."""

    kind: ClassVar[str] = "step-source"
    source: str
    name: str
    """Class of the optimizer or of the model."""


@dataclass(frozen=True, slots=True)
class Program:
    """The device's compiler has compiled one program."""

    kind: ClassVar[str] = "program"
    index: int
    sha256: str
    size: int
    """Bytes of the program handed to the compiler."""
    seconds: float
    failed: bool


@dataclass(frozen=True, slots=True)
class MemoryBeside:
    """In a counted step, the bytes on the device beside each program, by its index: all but its arguments and results.

    The most over its executions; it is written only in runs that look for the largest batch.
    """

    kind: ClassVar[str] = "memory-beside"
    bytes: dict[int, int]


@dataclass(frozen=True, slots=True)
class Operation:
    """One torch operation at one place, in the watched step."""

    kind: ClassVar[str] = "operation"
    name: str
    """Without its namespace and overload."""
    module: str
    """The name that the module's frame bears on a stack (see `modules`); empty outside of all models."""
    frame: Frame | None
    """The line of model code; of a gradient, that of the operation that it is the gradient of."""
    phase: StepPhase
    count: int
    """Times that it ran."""
    programs: dict[int, int]
    """Executions of each program, by its index, that one run started."""


@dataclass(frozen=True, slots=True)
class CpuOperation:
    """An operation that ran on the CPU although it is part of the device's work, in the watched step."""

    kind: ClassVar[str] = "cpu-operation"
    name: str
    why: CpuReason
    module: str
    """As in `Operation`."""
    frame: Frame | None
    count: int


@dataclass(frozen=True, slots=True)
class InputWait:
    """At one line, the script waited for batches of a DataLoader; sums over one step."""

    kind: ClassVar[str] = "input-wait"
    step: int
    frame: Frame | None
    """The user's line."""
    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class BeforeModel:
    """What passed from the beginning of a step to the first call of a model in it, DataLoaders' batches apart."""

    kind: ClassVar[str] = "before-model"
    step: int
    frame: Frame | None
    """The user's line that calls the model."""
    seconds: float


@dataclass(frozen=True, slots=True)
class HostSync:
    """At one line, the host waited for the device to read a tensor; sums over one counted step."""

    kind: ClassVar[str] = "host-sync"
    step: int
    what: str
    frame: Frame | None
    """The user's line."""
    count: int
    seconds: float | None
    """None where only the copy to the host was seen, not the call around it."""
    inner: Frame | None = None
    """The line of an installed package that reads it, where it is not the user's."""


@dataclass(frozen=True, slots=True)
class Root:
    """tpuport has put torch.compile around an outermost module."""

    kind: ClassVar[str] = "root"
    module: str
    frame: Frame | None
    """The user's line that called it first."""
    parameters: tuple[str, ...] = ()
    """Names of its positional arguments."""


@dataclass(frozen=True, slots=True)
class TargetMissed:
    """A --compile-target named nothing that the script has made or called."""

    kind: ClassVar[str] = "target-missed"
    name: str
    seen: tuple[str, ...]
    """Classes of modules in the models that were called, and the script's own functions."""


@dataclass(frozen=True, slots=True)
class UserCompile:
    """The script itself called torch.compile or Module.compile."""

    kind: ClassVar[str] = "user-compile"
    frame: Frame | None
    """The user's line that calls it."""


@dataclass(frozen=True, slots=True)
class FrameStarted:
    """Dynamo has started on a frame; the last entry of `stack` is the function itself, at its first line."""

    kind: ClassVar[str] = "frame-started"
    frame_id: int
    compile_id: int
    stack: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class FrameCompiled:
    """Dynamo has finished with a frame."""

    kind: ClassVar[str] = "frame-compiled"
    frame_id: int
    compile_id: int
    function: str | None
    file: str | None
    line: int | None
    operations: int
    """Operations in the graph; 0 when the frame holds no graph."""
    seconds: float
    failure: str | None
    failure_reason: str | None


@dataclass(frozen=True, slots=True)
class GraphBreak:
    """Dynamo's own account of a graph break, verbatim."""

    kind: ClassVar[str] = "graph-break"
    frame_id: int
    compile_id: int
    text: str


@dataclass(frozen=True, slots=True)
class Recompile:
    """Why Dynamo compiles a frame again: one text for each compiled version that did not fit."""

    kind: ClassVar[str] = "recompile"
    frame_id: int
    compile_id: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Precision:
    """The types in which the first model called computes: of its weights and its results, and of autocast around it."""

    kind: ClassVar[str] = "precision"
    dtypes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TensorSeen:
    """One tensor of a model, in one of the checked steps; they are written in the order in which they were seen."""

    kind: ClassVar[str] = "tensor"
    step: int
    what: str
    """`weight` (as it was before the step), `input`, `output` or `gradient`."""
    module: str
    """Class of the model and path of the part in it."""
    name: str
    """Name of the parameter, or place among what the module takes or gives."""
    number: int
    """How many of this name were seen before in the step."""
    drawn: bool
    """Whether CPU random numbers were drawn since the tensor before."""
    digest: Digest


@dataclass(frozen=True, slots=True)
class StoodIn:
    """An operation or a feature that the emulation lacks was stood in for; written at its first use."""

    kind: ClassVar[str] = "stood-in"
    what: str
    how: str
    frame: Frame | None = None
    """The user's line that was the first to use it; None in a gradient, which autograd computes without Python."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something that the reader of the report should know."""

    kind: ClassVar[str] = "note"
    code: str
    text: str
    frame: Frame | None = None


@dataclass(frozen=True, slots=True)
class Traced:
    """After the timed steps some more were traced."""

    kind: ClassVar[str] = "traced"
    steps: int
    files: tuple[str, ...]
    """In the session folder."""


@dataclass(frozen=True, slots=True)
class Enough:
    """All steps asked for are measured; whatever happens afterwards does not matter."""

    kind: ClassVar[str] = "enough"


@dataclass(frozen=True, slots=True)
class Ended:
    """The script has come to an end that Python could see.

    `how` is `enough` (stopped by tpuport), `finished`, `exit` (sys.exit), `os-exit`, `exec` (replaced by another
    program, which `error` names) or `raised`.
    """

    kind: ClassVar[str] = "ended"
    how: str
    code: int = 0
    """The status that the script asked for."""
    error: str = ""
    """Type and message of what was raised."""
    frame: Frame | None = None
    """The user's line."""
    traceback: str = ""


Record = (
    Started
    | Step
    | StepSourceChosen
    | Program
    | MemoryBeside
    | Operation
    | CpuOperation
    | InputWait
    | BeforeModel
    | HostSync
    | Root
    | TargetMissed
    | UserCompile
    | FrameStarted
    | FrameCompiled
    | GraphBreak
    | Recompile
    | Precision
    | TensorSeen
    | StoodIn
    | Note
    | Traced
    | Enough
    | Ended
)

_KINDS: dict[str, type[Any]] = {record.kind: record for record in get_args(Record)}

R = TypeVar("R")

# Taken before the script runs, which may put functions of its own in the place of these.
_ENCODER = json.JSONEncoder(separators=(",", ":"))
_open, _close, _write, _status, _process = os.open, os.close, os.write, os.fstat, os.getpid


class RecordWriter:
    """Appends records to a file. Processes forked from the one that opened it write nothing.

    The script shares the process, and may close every descriptor, and open files of its own under the numbers.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._owner = _process()
        self._open()

    def _open(self) -> None:
        self._descriptor = _open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        status = _status(self._descriptor)
        self._identity = status.st_dev, status.st_ino

    @property
    def owns_process(self) -> bool:
        """Whether this is the process that opened the file, not a fork of it."""
        return _process() == self._owner

    def write(self, record: Record) -> None:
        """Append `record` and hand it to the operating system."""
        if self.owns_process:
            if not self._is_open():
                self._open()
            line = _ENCODER.encode({"v": VERSION, "kind": record.kind, "data": encode(record)}) + "\n"
            left = line.encode()
            while left:
                left = left[_write(self._descriptor, left) :]

    def _is_open(self) -> bool:
        try:
            status = _status(self._descriptor)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._identity

    def close(self) -> None:
        """Close the file; the next record would open it again."""
        if self._is_open():
            _close(self._descriptor)


@dataclass(frozen=True, slots=True)
class Records:
    """The records of one child process, in the order in which they were written."""

    items: tuple[Record, ...] = ()
    unknown: int = 0
    """Well-formed records of a kind or version that this tpuport does not know."""
    damaged: int = 0
    """Lines that are no record."""

    def of(self, kind: type[R]) -> tuple[R, ...]:
        """Return the records of one kind."""
        return tuple(item for item in self.items if isinstance(item, kind))

    def last(self, kind: type[R]) -> R | None:
        """Return the newest record of one kind."""
        return next((item for item in reversed(self.items) if isinstance(item, kind)), None)


def read_records(path: Path) -> Records:
    """Read a child's records; a missing file means that it never came to write one."""
    if not path.exists():
        return Records()
    items: list[Record] = []
    unknown = damaged = 0
    for line in _lines(path):
        try:
            envelope = json.loads(line)
            version, kind, data = envelope["v"], envelope["kind"], envelope["data"]
        except (ValueError, KeyError, TypeError):
            damaged += 1
            continue
        if version != VERSION or kind not in _KINDS:
            unknown += 1
            continue
        try:
            items.append(decode(_KINDS[kind], data))
        except DecodeError:
            damaged += 1
    return Records(tuple(items), unknown, damaged)


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.strip():
                yield line
