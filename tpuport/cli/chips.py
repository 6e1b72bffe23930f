"""The option `--chip` of `profile` and `report`."""

from rich.console import Console

from tpuport.errors import UsageError
from tpuport.profile.chips.specs import ChipName
from tpuport.profile.engine import require_compiler
from tpuport.profile.plan import Plan

CHIP_HELP = "Estimate the step on this TPU with its real compiler; repeatable. None needs to be attached."


def chosen_chips(chips: list[ChipName] | None, plan: Plan) -> tuple[str, ...]:
    """Return the chips asked for, each once.

    Raises UsageError when they can't be compiled for.
    """
    if not chips:
        return ()
    if not plan.device.is_tpu:
        raise UsageError(
            f"--chip compiles what torch_tpu would run, and the device is {plan.device.value}",
            hint="Use --device emulated-tpu.",
        )
    require_compiler()
    return tuple(dict.fromkeys(chip.value for chip in chips))


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
