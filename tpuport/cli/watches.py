"""What `profile` and `report` say on standard error while they work."""

from rich.console import Console

from tpuport.profile.batch_search import MAX_RUNS
from tpuport.profile.layout import REFERENCE
from tpuport.profile.plan import Device, Plan


class RunWatch:
    """Says on standard error which mode runs, and how long it took."""

    def __init__(self, console: Console, plan: Plan) -> None:
        self._console = console
        self._plan = plan
        self._started = 0

    def __call__(self, name: str, seconds: float | None) -> None:
        """Report that the run `name` starts, or that it took `seconds`."""
        plan = self._plan
        self._started += seconds is None
        total = len(plan.modes) * plan.repeat + bool(plan.checked_steps)
        device = Device.CPU if name == REFERENCE else plan.device
        head = f"[{self._started}/{total}] {name} on {device.value}"
        self._console.print(f"{head}: {'running' if seconds is None else f'{seconds:.0f} s'}", markup=False)


class BatchWatch:
    """Says on standard error how long each run took that looks for the largest batch."""

    def __init__(self, console: Console, plan: Plan) -> None:
        self._console = console
        self._argument = plan.batch_argument
        self._started = 0

    def __call__(self, name: str, seconds: float | None) -> None:
        """Report that the run `name` starts, or that it took `seconds`."""
        self._started += seconds is None
        head = f"largest batch, {self._argument}, run {self._started} of at most {MAX_RUNS}, {name}"
        self._console.print(f"{head}: {'running' if seconds is None else f'{seconds:.0f} s'}", markup=False)


class CompileWatch:
    """Says on standard error how far the TPU compiler is, about ten times."""

    def __init__(self, console: Console, chips: tuple[str, ...]) -> None:
        self._console = console
        self._chips = ", ".join(chips)

    def __call__(self, done: int, total: int) -> None:
        """Report that `done` of `total` programs are compiled."""
        if not total:
            self._console.print(f"nothing to compile for {self._chips}: no mode came to a step", markup=False)
        elif done in (0, total) or done % max(1, total // 10) == 0:
            self._console.print(f"compiling for {self._chips}: {done} of {total} programs", markup=False)
