"""From a plan to a saved session."""

from collections.abc import Callable
from pathlib import Path

from tpuport.errors import UsageError
from tpuport.profile.plan import Mode, Plan
from tpuport.profile.runner import Interrupted, ProcessExit, run_mode
from tpuport.profile.session import Session, load, new_header, save

Watch = Callable[[Mode, ProcessExit | None], None]
"""Told when a mode starts (with None) and how its process ended."""


def prepare_folder(folder: Path) -> None:
    """Create the session folder.

    Raises UsageError when there is something in it, or it can't be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        occupied = any(folder.iterdir())
    except OSError as error:
        raise UsageError(
            f"the session folder {folder} can't be written: {error.strerror}", hint="Choose another with --output."
        ) from None
    if occupied:
        raise UsageError(
            f"the session folder {folder} is not empty",
            hint="Choose another with --output; a session is never overwritten.",
        )


def run_session(plan: Plan, folder: Path, watch: Watch) -> Session:
    """Run every mode of `plan`, saving the session in `folder` after each, and return it.

    On Ctrl-C the session is saved with what it has, and KeyboardInterrupt goes on.
    """
    header = new_header(plan)
    try:
        save(folder, header)
    except OSError as error:
        raise UsageError(
            f"the session folder {folder} can't be written: {error.strerror}", hint="Choose another with --output."
        ) from None
    for mode in plan.modes:
        watch(mode, None)
        try:
            end = run_mode(plan, mode, folder / mode.value)
        except Interrupted as interruption:
            save(folder, header.with_run(mode, interruption.exit))
            raise
        header = header.with_run(mode, end)
        save(folder, header)
        watch(mode, end)
    return load(folder)
