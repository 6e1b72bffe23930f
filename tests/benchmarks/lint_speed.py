"""lint beside ruff and TorchFix over one tree: `python -m tests.benchmarks.lint_speed [TREE...]`.

Prints each tool's time, lines a second, peak memory, and how lint compares. Without a TREE: the site-packages of this
Python. TorchFix is slow: it gets a sample of the files that hold the word torch, and is compared by lines. A tool that
is not installed is left out.
"""

import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SAMPLE = 40
"""Files that TorchFix gets."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The fastest of several runs of one command."""

    name: str
    seconds: float
    cpu: float
    lines: int
    peak: int

    def row(self) -> str:
        """Its line of the table."""
        speed = f"{self.lines / self.seconds:>12,.0f}" if self.lines else " " * 12
        return f"{self.name:<28}{self.seconds:>9.3f} s{self.cpu:>9.2f} s CPU{speed} lines/s{self.peak >> 20:>7} MB"


def measure(name: str, command: Sequence[str], lines: int, runs: int, environment: dict[str, str]) -> Measured:
    """Run `command` several times, each in a process of its own."""
    best = None
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
            peak = _watched(process)
            seconds = time.perf_counter() - started
            if process.returncode not in (0, 1, 2):
                output.seek(0)
                raise SystemExit(f"{' '.join(command)} ended with {process.returncode}: {output.read(2000)!r}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if best is None or seconds < best.seconds:
            best = Measured(name, seconds, cpu, lines, peak)
    assert best is not None
    return best


def _watched(process: "subprocess.Popen[bytes]") -> int:
    """Wait for a process; the most memory that it and its children held at one moment, as far as /proc tells."""
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(_resident(pid) for pid in _family(process.pid)))
        time.sleep(0.02)
    return peak


def _family(pid: int) -> Iterator[int]:
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in children:
        yield from _family(int(child))


def _resident(pid: int) -> int:
    """Memory of a process, with what it shares counted in part."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    except (OSError, ValueError):
        pass
    return 0


def files(trees: Sequence[Path]) -> list[Path]:
    """All Python files of the trees."""
    return sorted(file for tree in trees for file in tree.rglob("*.py") if file.is_file())


def count_lines(of: Sequence[Path]) -> int:
    return sum(file.read_bytes().count(b"\n") for file in of)


def ratio(text: str, value: float, goal: float) -> None:
    print(f"{text:<58}{value:>9.2f}  (goal: at most {goal:g})  {'met' if value <= goal else 'MISSED'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    trees = options.trees or [Path(sysconfig.get_paths()["purelib"])]
    found = files(trees)
    lines = count_lines(found)
    names = [str(tree) for tree in trees]
    print(f"{len(found):,} files, {lines:,} lines; {os.cpu_count()} cores; the fastest of {options.runs} runs")
    with tempfile.TemporaryDirectory() as temporary:
        environment = {**os.environ, "TPUPORT_CACHE_DIR": f"{temporary}/lint"}
        environment["PYTHONPYCACHEPREFIX"] = f"{temporary}/compiled"
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        compare(names, found, lines, options.runs, environment, Path(temporary))


def compare(
    names: list[str],
    found: list[Path],
    lines: int,
    runs: int,
    environment: dict[str, str],
    temporary: Path,
) -> None:
    own = [sys.executable, "-m", "tpuport", "lint", "--format", "concise"]
    small = temporary / "small.py"
    small.write_text("import torch\n\nmodel = torch.nn.Linear(2, 2).cuda()\n")
    subprocess.run([*own, str(small)], env=environment, capture_output=True, check=False)  # compiles tpuport itself
    one = measure("lint, one small file", [*own, str(small)], 3, max(runs, 10), environment)
    print(one.row())
    ratio("lint, one small file / 150 ms", one.seconds / 0.150, 1)
    cold = measure("lint, cold", [*own, "--no-cache", *names], lines, runs, environment)
    print(cold.row())
    measure("", [*own, *names], lines, 1, environment)
    warm = measure("lint, warm", [*own, *names], lines, runs, environment)
    print(warm.row())
    ratio("lint, peak memory cold / 500 MB", cold.peak / 500e6, 1)
    ruff = shutil.which("ruff")
    if ruff:
        # The same files: ruff would leave out what .gitignore and its own defaults exclude.
        command = [
            ruff,
            "check",
            "--quiet",
            "--isolated",
            "--exit-zero",
            "--config",
            "exclude = []",
            "--no-respect-gitignore",
        ]
        command += ["--cache-dir", str(temporary / "ruff")]
        ruff_cold = measure("ruff, cold", [*command, "--no-cache", *names], lines, runs, environment)
        print(ruff_cold.row())
        measure("", [*command, *names], lines, 1, environment)
        ruff_warm = measure("ruff, warm", [*command, *names], lines, runs, environment)
        print(ruff_warm.row())
        ratio("lint cold / ruff cold", cold.seconds / ruff_cold.seconds, 2)
        ratio("lint warm / ruff warm", warm.seconds / ruff_warm.seconds, 1)
    torchfix = shutil.which("torchfix")
    if torchfix:
        candidates = [file for file in found if b"torch" in file.read_bytes()]
        sample = random.Random(0).sample(candidates, min(SAMPLE, len(candidates)))
        sampled = count_lines(sample)
        folder = temporary / "sample"
        folder.mkdir()
        for number, file in enumerate(sample):
            shutil.copy(file, folder / f"f{number}.py")
        theirs = measure(f"TorchFix, {len(sample)} files", [torchfix, str(folder)], sampled, 1, environment)
        print(theirs.row())
        ours = measure(
            f"lint, the same {len(sample)} files", [*own, "--no-cache", str(folder)], sampled, runs, environment
        )
        print(ours.row())
        per_line = (theirs.cpu / sampled) / (cold.cpu / lines)
        print(f"{'TorchFix CPU a line / lint CPU a line (whole tree)':<58}{per_line:>9.0f}  (goal: at least 200)")
        same = theirs.cpu / ours.cpu
        print(f"{'TorchFix CPU / lint CPU, the same files, start-up included':<58}{same:>9.0f}")


if __name__ == "__main__":
    main()
