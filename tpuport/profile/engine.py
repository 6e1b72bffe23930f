"""From a plan to a saved session."""

import errno
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from tpuport.errors import TpuportError, UsageError
from tpuport.profile.analyses import Report
from tpuport.profile.analyses.programs import step_programs
from tpuport.profile.chips.compiler import PACKAGES
from tpuport.profile.chips.pool import Progress, compile_programs
from tpuport.profile.chips.viewer import show_modules
from tpuport.profile.descendants import none_left_behind
from tpuport.profile.layout import CONTENTS, PROGRAMS, REFERENCE, SOURCES, run_folder
from tpuport.profile.machine import INSTALL_PROFILE, missing
from tpuport.profile.places import Place
from tpuport.profile.plan import Mode, Plan, reference_plan
from tpuport.profile.records import FILE_NAME, Ended, TargetMissed, read_records
from tpuport.profile.runner import Interrupted, ProcessExit, run_mode
from tpuport.profile.session import Session, SessionHeader, load, new_header, save

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FREE_SPACE = "Free some space there, or choose another folder with --output."
Watch = Callable[[str, float | None], None]
"""Told when a run starts, by a name for it (with None), and how many seconds it took."""


def prepare_folder(folder: Path) -> None:
    """Create the session folder.

    Raises UsageError when there is something in it, or it can't be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        occupied = any(folder.iterdir())
    except OSError as error:
        raise _unwritable(folder, error) from None
    if occupied:
        raise UsageError(
            f"the session folder {folder} is not empty",
            hint="Choose another with --output; a session is never overwritten.",
        )


def _unwritable(folder: Path, error: OSError) -> UsageError:
    hint = _FREE_SPACE if error.errno in _FULL else "Choose another with --output."
    return UsageError(f"the session folder {folder} can't be written: {error.strerror}", hint=hint)


def run_session(plan: Plan, folder: Path, watch: Watch) -> Session:
    """Run every mode of `plan`, saving the session in `folder` after each, and return it.

    On Ctrl-C the session is saved with what it has, and KeyboardInterrupt goes on.
    """
    header = new_header(plan)
    try:
        (folder / PROGRAMS).mkdir()
        (folder / CONTENTS).mkdir()
        save(folder, header)
    except OSError as error:
        raise _unwritable(folder, error) from None
    # Round after round, so that a machine that slows down or speeds up does so for every mode.
    for number, mode in product(range(1, plan.repeat + 1), plan.modes):
        files = run_folder(folder, mode.value, number)
        name = mode.value if number == 1 else f"{mode.value}, run {number}"
        header = _run(plan, mode, folder, files, name, watch, partial(header.with_run, mode, number))
        _check_targets(files)
    if plan.checked_steps:
        end_reference = partial(header.with_reference, Mode.EAGER)
        _run(reference_plan(plan), Mode.EAGER, folder, folder / REFERENCE, REFERENCE, watch, end_reference)
    return load(folder)


def _run(
    plan: Plan,
    mode: Mode,
    folder: Path,
    files: Path,
    name: str,
    watch: Watch,
    with_ends: Callable[[tuple[ProcessExit, ...]], SessionHeader],
) -> SessionHeader:
    watch(name, None)
    try:
        with none_left_behind():
            ends = run_mode(plan, mode, files, folder)
    except Interrupted as interruption:
        _save_what_ran(folder, with_ends(interruption.exits), name)
        raise
    header = with_ends(ends)
    _save_what_ran(folder, header, name)
    watch(name, max(end.seconds for end in ends))
    return header


def _save_what_ran(folder: Path, header: SessionHeader, name: str) -> None:
    try:
        save(folder, header)
    except OSError as error:
        raise TpuportError(
            f"the session in {folder} is lost: after the script ran ({name}), {error.strerror}",
            hint=_FREE_SPACE
            if error.errno in _FULL
            else "Does the script clear that folder? Choose another with --output.",
        ) from None


def _check_targets(folder: Path) -> None:
    """Raise UsageError when a script that ran to its end had nothing of a target's name: every mode would miss it."""
    records = read_records(folder / FILE_NAME)
    ended = records.last(Ended)
    missed = records.of(TargetMissed)
    if not missed or ended is None or ended.how not in ("enough", "finished"):
        return
    names = " and ".join(repr(record.name) for record in missed)
    seen = ", ".join(missed[0].seen) or "nothing"
    raise UsageError(
        f"--compile-target {names} names nothing in the script; it has called or defined: {seen}",
        hint="Name a module's class, a function of the script, or MODULE:ATTRIBUTE for what another module defines.",
    )


def require_compiler() -> None:
    """Raise UsageError when the TPU compiler is not installed."""
    if absent := missing(PACKAGES):
        raise UsageError(f"--chip needs {' and '.join(absent)}, not installed", hint=f"Install with: {INSTALL_PROFILE}")


def compile_for_chips(session: Session, chips: tuple[str, ...], progress: Progress) -> Session:
    """Compile the programs of every mode's step for `chips`, save the results and return the session with them."""
    for batch in session.batches.values():
        compile_for_chips(batch, chips, lambda _done, _total: None)
    programs = dict.fromkeys(digest for run in session.runs for digest in step_programs(run.records) if digest)
    if not programs:
        progress(0, 0)
        return session
    traced = bool(session.plan.traced)
    compile_programs(session.folder, programs, chips, progress, keep_modules=traced)
    if traced:
        show_modules(session.folder, chips, {run.mode: step_programs(run.records) for run in session.runs})
    return load(session.folder)


def keep_sources(session: Session, report: Report) -> None:
    """Keep the text of the files that the report refers to. Raises OSError."""
    session.sources.save(session.folder / SOURCES, (place.file for place in _places(report)))


def _places(value: Any) -> Iterator[Place]:
    if isinstance(value, Place):
        yield value
    elif is_dataclass(value):
        for field in fields(value):
            yield from _places(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from _places(item)
