"""Write the reports' snapshots anew: `python -m tests.profile.write_snapshots`. Read the diff before committing it."""

import tempfile
from pathlib import Path

from tests.profile.test_output import SESSIONS, SNAPSHOTS, markdown, text


def main() -> None:
    SNAPSHOTS.mkdir(exist_ok=True)
    for name in SESSIONS:
        for ending, render in (("txt", text), ("md", markdown)):
            with tempfile.TemporaryDirectory() as folder:
                (SNAPSHOTS / f"{name}.{ending}").write_text(render(Path(folder), name), encoding="utf-8")


if __name__ == "__main__":
    main()
