"""Runs the script at several batch sizes, short runs each, to find the largest that fits each chip."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tpuport.profile.analyses.batches import batch_mode, measured, problems
from tpuport.profile.batch_argument import batch_size, with_batch_size
from tpuport.profile.batch_search import MAX_RUNS, Line, Measured, line, next_size
from tpuport.profile.chips.specs import CHIPS
from tpuport.profile.engine import Watch, compile_for_chips, run_session
from tpuport.profile.layout import BATCHES
from tpuport.profile.plan import Device, Plan
from tpuport.profile.session import Session, load

_HOST_SHARE = 0.5
"""Share of the machine's free memory that a batch may take on the emulated device: XLA's CPU backend needs more."""
_MEMORY = Path("/proc/meminfo")


def find_largest_batch(session: Session, chips: tuple[str, ...], watch: Watch) -> Session:
    """Run further batch sizes of the session's script and compile them, until the largest that fits is known.

    At most MAX_RUNS sizes are run, none that this machine has not the memory or the time for. Returns the session with
    what was measured.
    """
    plan = session.plan
    first = batch_size(plan.arguments, plan.batch_argument)
    while len(session.batches) < MAX_RUNS:
        size = _next(session, chips, first)
        if size is None:
            break
        folder = session.folder / BATCHES / str(size)
        folder.mkdir(parents=True)
        batch = run_session(_plan(session, size), folder, watch)
        compile_for_chips(batch, chips, lambda _done, _total: None)
        session = load(session.folder)
    return session


def _plan(session: Session, size: int) -> Plan:
    plan = session.plan
    return replace(
        plan,
        arguments=with_batch_size(plan.arguments, plan.batch_argument, size),
        modes=(batch_mode(session),),
        memory=True,
        batch_argument="",
        steps=1,
        warmup=1,
        counted=1,
        traced=0,
        checked_steps=0,
        repeat=1,
    )


def _next(session: Session, chips: Iterable[str], first: int) -> int | None:
    for chip in chips:
        points = measured(session, chip)
        if problems(session, chip):
            continue
        size = next_size(points, CHIPS[chip].usable, first, _ceiling(session, points))
        if size is not None and size not in session.batches:
            return size
    return None


def _ceiling(session: Session, points: list[Measured]) -> int | None:
    """Return the largest size that can be run here, as far as the sizes before tell."""
    times = [
        Measured(size, int(1e3 * max(run.exit.seconds for run in batch.runs)), True)
        for size, batch in session.batches.items()
        if batch.runs
    ]
    ends = [min(times, key=_size), max(times, key=_size)] if len(times) > 1 else []
    reaches = [_reach(line(ends), 1e3 * session.plan.timeout_s)]
    if session.plan.device is Device.EMULATED_TPU:
        reaches.append(_reach(line(points), _HOST_SHARE * _free_memory()))
    return min((size for size in reaches if size is not None), default=None)


def _size(point: Measured) -> int:
    return point.size


def _reach(rising: Line | None, limit: float) -> int | None:
    return None if rising is None else rising.reach(limit)


def _free_memory() -> int:
    """Return the bytes that this machine can still give to a process."""
    (line_,) = (text for text in _MEMORY.read_text(encoding="utf-8").splitlines() if text.startswith("MemAvailable:"))
    return int(line_.split()[1]) * 1024
