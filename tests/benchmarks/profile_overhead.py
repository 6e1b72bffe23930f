"""What `tpuport profile` itself adds to the steps that it times: `python -m tests.benchmarks.profile_overhead`.

The same training (`timed_training`) runs bare and profiled in each mode on the emulated TPU. Bare has the same
emulator and the same steps before the timed ones, a timer of its own, and nothing else of tpuport. Pairs alternate in
their order, so that a machine that slows down does so for both. Each ratio is the median over the pairs, with the
lowest and the highest:

- time a step: what the report shows, by what the bare run's own timer shows
- processor: the time of all threads from one step's end to the next, by that of the bare run. It bears a loaded
  machine; what tpuport does between two steps, which no step's time holds, is in it
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tpuport.profile.plan import Mode
from tpuport.profile.records import Phase, Step
from tpuport.profile.session import load

GOAL = 1.05
"""A step may take 5% longer where it is profiled."""
_MODES = (Mode.EAGER, Mode.FUSED, Mode.COMPILED)
_TRAINING = "tests.benchmarks.timed_training"
_BEYOND = 10
"""Steps that come before the timed ones, at most, besides the warm-up that is asked for."""


@dataclass(frozen=True, slots=True)
class Seconds:
    """The median step of one run."""

    wall: float
    processor: float


def profiled(mode: Mode, folder: Path, options: argparse.Namespace) -> tuple[Seconds, range]:
    """Return the median timed step of a profiled run, and which steps were timed."""
    command = [
        sys.executable, "-m", "tpuport", "profile", "--device", "emulated-tpu", "--mode", mode.value, "--json",
        "--steps", str(options.steps), "--warmup", str(options.warmup), "--output", str(folder / "session"),
        "-m", _TRAINING, "--", *_arguments(folder, options),
    ]  # fmt: skip
    _run(command)
    (run,) = load(folder / "session").runs
    timed = [step for step in run.records.of(Step) if step.phase is Phase.TIMED]
    if len(timed) < options.steps or any(step.compiled for step in timed):
        raise SystemExit(f"{mode.value}: {len(timed)} timed steps, some of which compiled; look at {folder}")
    steps = range(timed[0].index, timed[-1].index + 1)
    seconds = _median(_stamps(folder), steps)
    return Seconds(statistics.median(step.seconds for step in timed), seconds.processor), steps


def bare(mode: Mode, folder: Path, options: argparse.Namespace) -> list[Seconds]:
    """Return the clocks at every step's end of a bare run."""
    last = str(options.warmup + _BEYOND + options.steps)
    _run([sys.executable, "-m", _TRAINING, "--bare", mode.value, "--last", last, *_arguments(folder, options)])
    return _stamps(folder)


def _arguments(folder: Path, options: argparse.Namespace) -> list[str]:
    sizes = {"layers": options.layers, "width": options.width, "batch": options.batch}
    return ["--stamps", str(folder / "stamps"), *(f"--{name}={value}" for name, value in sizes.items())]


def _run(command: Sequence[str]) -> None:
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")


def _stamps(folder: Path) -> list[Seconds]:
    lines = (folder / "stamps").read_text(encoding="ascii").splitlines()
    return [Seconds(*map(float, line.split())) for line in lines]


def _median(stamps: Sequence[Seconds], steps: range) -> Seconds:
    """Return the median of these steps, each from the end of the one before it."""
    ends = stamps[steps.start - 1 : steps.stop]
    return Seconds(
        statistics.median(after.wall - before.wall for before, after in pairwise(ends)),
        statistics.median(after.processor - before.processor for before, after in pairwise(ends)),
    )


def measure(mode: Mode, options: argparse.Namespace) -> list[tuple[Seconds, Seconds]]:
    """Return bare and profiled step of every pair."""
    pairs = []
    for number in range(options.pairs):
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            if number % 2:
                with_it, steps = profiled(mode, Path(first), options)
                stamps = bare(mode, Path(second), options)
            else:
                stamps = bare(mode, Path(first), options)
                with_it, steps = profiled(mode, Path(second), options)
        pairs.append((_median(stamps, steps), with_it))
        print(f"  {mode.value}, pair {number + 1}: {_pair(*pairs[-1])}", flush=True)
    return pairs


def _pair(without: Seconds, with_it: Seconds) -> str:
    return (
        f"time {1e3 * without.wall:.2f} → {1e3 * with_it.wall:.2f} ms, "
        f"processor {1e3 * without.processor:.2f} → {1e3 * with_it.processor:.2f} ms"
    )


def _ratio(mode: Mode, what: str, ratios: list[float]) -> None:
    middle = statistics.median(ratios)
    verdict = "met" if middle <= GOAL else "MISSED"
    spread = f"{min(ratios):.3f} – {max(ratios):.3f}"
    print(f"{mode.value:<10}{what:<14}{middle:>7.3f}   {spread}   (goal: at most {GOAL:g})  {verdict}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", type=Mode, choices=_MODES, action="append")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--batch", type=int, default=16)
    options = parser.parse_args()
    measured = {mode: measure(mode, options) for mode in options.mode or _MODES}
    print(f"profiled by bare, median of {options.pairs} pairs, lowest – highest")
    for mode, pairs in measured.items():
        _ratio(mode, "time a step", [with_it.wall / without.wall for without, with_it in pairs])
        _ratio(mode, "processor", [with_it.processor / without.processor for without, with_it in pairs])


if __name__ == "__main__":
    main()
