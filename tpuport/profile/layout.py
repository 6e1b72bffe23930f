"""Names of the files in a session folder, and how its JSON files are read and written."""

import json
import os
import shlex
from pathlib import Path
from typing import Any

SESSION = "session.json"
PLAN = "plan.json"
ENOUGH = "enough"
"""Empty file by which a rank says that it has measured all it was to measure, and goes on for its peers' sake."""
STDOUT_LOG = "stdout.log"
STDERR_LOG = "stderr.log"
DEVICE_LOG = "device.log"
"""What the device's runtime prints while it starts."""
CRASH_LOG = "crash.log"
"""The Python stack at a fatal signal or at the time limit."""

TRACES = "plugins/profile"
"""Folder of what TensorBoard's profile plugin opens when the session is its logdir: one folder a mode."""
XPLANE_SUFFIX = ".xplane.pb"
KINETO_TRACE = "kineto.pt.trace.json"
"""What torch.profiler has seen, for Perfetto and chrome://tracing."""
REFERENCE = "cpu-float32"
"""Folder of the run on the CPU in float32, with whose numbers those of the modes are compared."""
CHIPS = "chips"
"""Folder of what the TPU compiler said, one folder a chip, one JSON file a program."""
MODULE_SUFFIX = ".hlo_proto.pb"
"""What a program becomes on a chip; TensorBoard's graph viewer goes by this name."""
SOURCES = "sources.json"
"""The user's source files that the report refers to, as they were when the session was profiled."""
PROGRAMS = "programs"
"""Folder of the programs that were executed in the counted steps of any mode, one file each, named by its SHA-256."""

BATCHES = "batches"
"""Folder of the runs that look for the largest batch: one session a batch size, named by it."""
CONTENTS = "contents"
"""Folder of what those programs hold, one JSON file each."""


def read_json(path: Path) -> Any:
    """Parse the JSON file at `path`."""
    return json.loads(path.read_text(encoding="utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Write `value` to `path` so that a reader sees the old file or the new one, never a part."""
    write_bytes(path, (json.dumps(value, indent=1) + "\n").encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path` so that a reader sees the old file or the new one, never a part."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    draft.write_bytes(content)
    os.replace(draft, path)


def as_typed(path: Path) -> str:
    """Return `path` as it is best typed: relative where it is below the current directory, quoted where needed."""
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))


def run_folder(session: Path, mode: str, number: int = 1) -> Path:
    """Return the folder of a mode's run by its number, from 1."""
    return session / mode if number == 1 else session / f"run-{number}" / mode


def rank_folder(run: Path, rank: int) -> Path:
    """Return the folder of one rank of a run; the first rank's is the run's own."""
    return run / f"rank-{rank}" if rank else run
