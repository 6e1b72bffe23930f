"""Running the command line as a user does, and made-up sessions."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.docs import schemas
from tpuport.profile.codec import encode
from tpuport.profile.layout import SESSION, write_json
from tpuport.profile.plan import Device, Mode, Plan
from tpuport.profile.records import FILE_NAME, RecordWriter
from tpuport.profile.runner import ExitKind, ProcessExit
from tpuport.profile.session import SessionHeader, save

SCRIPTS = Path(__file__).resolve().parents[2] / "fixtures" / "scripts"
LIMIT_S = 180


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "PYTHONWARNINGS")}
    return {**kept, "NO_COLOR": "1", "COLUMNS": "100", "TERM": "dumb"}


def tpuport(*arguments: str | Path, cwd: Path) -> Result:
    done = subprocess.run(
        [sys.executable, "-m", "tpuport", *map(str, arguments)],
        cwd=cwd,
        env={**environment(), "TPUPORT_CACHE_DIR": str(cwd / "cache")},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True)
class Profiled:
    """What `tpuport profile --json` has said of a script, and where its session is."""

    result: Result
    session: Path

    def row(self, section: str, mode: str) -> Any:
        return next(row for row in self.result.document[section]["rows"] if row["mode"] == mode)

    def failure(self, mode: str = "eager") -> Any:
        return self.row("modes", mode)["failure"]


def profile(folder: Path, script: str | Path, *options: str, arguments: tuple[str, ...] = ()) -> Profiled:
    path = SCRIPTS / script
    result = tpuport("profile", path, "--json", "--output", folder / "session", *options, "--", *arguments, cwd=folder)
    if result.out:
        schemas.check("profile", result.document)
    return Profiled(result, folder / "session")


def make_plan(**changes: Any) -> Plan:
    values: dict[str, Any] = {
        "script": "/project/train.py",
        "script_as_given": "train.py",
        "arguments": ("--fast",),
        "directory": "/project",
        "device": Device.EMULATED_TPU,
        "modes": (Mode.EAGER, Mode.COMPILED),
        "steps": 3,
        "warmup": 1,
        "warmup_limit": 5,
        "counted": 1,
        "timeout_s": 10.0,
        "seed": 0,
    }
    return Plan(**values | changes)


def make_session(
    folder: Path,
    records: dict[Mode, list[Any]],
    *,
    plan: Plan | None = None,
    exits: dict[Mode, ProcessExit] | None = None,
) -> Path:
    """Write a session as `tpuport profile` would have, from records."""
    plan = plan or make_plan(modes=tuple(records))
    folder.mkdir()
    header = SessionHeader(1, "0.1.0", "2026-01-02T03:04:05+00:00", {"torch": "2.13.0"}, plan)
    for mode, items in records.items():
        (folder / mode.value).mkdir()
        writer = RecordWriter(folder / mode.value / FILE_NAME)
        for item in items:
            writer.write(item)
        writer.close()
        header = header.with_run(mode, 1, [(exits or {}).get(mode, ProcessExit(ExitKind.EXITED, 0, 1.0))])
    save(folder, header)
    return folder


def rewrite_header(folder: Path, **changes: Any) -> None:
    path = folder / SESSION
    write_json(path, encode({**json.loads(path.read_text()), **changes}))
