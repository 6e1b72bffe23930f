"""The terminal sessions of the README: run, written into it, and compared with it.

`python -m tests.docs.sessions` runs every session of README.md again and writes what came out.

A session stands under a line `<!-- session: NAME -->`. Its lines that begin with `$` are run one after another in one
folder, which begins as a fresh git checkout of `fixtures/tiny_trainer`; a line `...` stands for output left out, from
the `head` and `tail` lines that the marker may ask for (`<!-- session: NAME head=12 tail=3 -->`).
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
FIXTURE = ROOT / "fixtures" / "tiny_trainer"
BLOCK = re.compile(
    r"<!-- session: (?P<name>[\w-]+)(?: head=(?P<head>\d+))?(?: tail=(?P<tail>\d+))? -->\n"
    r"```console\n(?P<body>.*?)```\n",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Session:
    """One session as the README shows it; `head` and `tail` count the lines of each command's output that are shown."""

    name: str
    commands: tuple[str, ...]
    body: str
    head: int
    tail: int

    def shown(self, output: str) -> str:
        """The part of a command's output that the README shows."""
        lines = output.splitlines()
        if self.head and len(lines) > self.head + self.tail:
            lines = [*lines[: self.head], "...", *lines[len(lines) - self.tail :]]
        return "".join(f"{line.rstrip()}\n" for line in lines)


def sessions(text: str) -> Iterator[tuple[re.Match[str], Session]]:
    """Every session of a README, with where it stands."""
    for found in BLOCK.finditer(text):
        commands = tuple(line[2:] for line in found["body"].splitlines() if line.startswith("$ "))
        yield found, Session(found["name"], commands, found["body"], int(found["head"] or 0), int(found["tail"] or 0))


def checkout(folder: Path) -> Path:
    """A fresh git checkout of the fixture repository in `folder`."""
    target = folder / "tiny_trainer"
    shutil.copytree(FIXTURE, target, ignore=shutil.ignore_patterns("__pycache__", "*.pt"))
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "Start"]):
        author = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        subprocess.run(["git", *author, *command], cwd=target, check=True)
    return target


def run(command: str, folder: Path) -> str:
    """What a command prints, both streams together, 100 columns wide and without colour."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment |= {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
    }
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return done.stdout


def body(session: Session, folder: Path) -> str:
    """The session's commands with what they print."""
    return "".join(f"$ {command}\n{session.shown(run(command, folder))}" for command in session.commands)


def main() -> None:
    """Write every session of README.md anew."""
    text = README.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as temporary:
        folder = checkout(Path(temporary))
        for found, session in reversed([*_run_all(text, folder)]):
            text = text[: found.start("body")] + session + text[found.end("body") :]
    README.write_text(text, encoding="utf-8")


def _run_all(text: str, folder: Path) -> Iterator[tuple[re.Match[str], str]]:
    for found, session in sessions(text):
        yield found, body(session, folder)


if __name__ == "__main__":
    main()
