"""The option `--chip` of `profile` and `report`."""

from typing import Annotated

import typer

from tpuport.errors import UsageError
from tpuport.profile.chips.specs import ChipName
from tpuport.profile.engine import require_compiler
from tpuport.profile.plan import Plan

ChipOption = Annotated[
    list[ChipName] | None,
    typer.Option(help="Estimate the step on this TPU with its real compiler; repeatable. None needs to be attached."),
]


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
