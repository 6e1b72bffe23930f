"""Names of the files in a session folder, and how its JSON files are read and written."""

import json
import os
from pathlib import Path
from typing import Any

SESSION = "session.json"
PLAN = "plan.json"
STDOUT_LOG = "stdout.log"
STDERR_LOG = "stderr.log"
DEVICE_LOG = "device.log"
"""What the device's runtime prints while it starts."""
CRASH_LOG = "crash.log"
"""The Python stack at a fatal signal or at the time limit."""


def read_json(path: Path) -> Any:
    """Parse the JSON file at `path`."""
    return json.loads(path.read_text(encoding="utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Write `value` to `path` so that a reader sees the old file or the new one, never a part."""
    draft = path.with_name(f".{path.name}.new")
    draft.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    os.replace(draft, path)
