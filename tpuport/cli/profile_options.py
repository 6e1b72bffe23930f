"""The options of `tpuport profile`, in the order in which its help lists them."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tpuport.profile.plan import Device, Mode, StepSource

TRACED_STEPS = 3


class DeviceChoice(StrEnum):
    """A device, or the best that the machine has."""

    AUTO = "auto"
    TPU = Device.TPU.value
    EMULATED_TPU = Device.EMULATED_TPU.value
    CUDA = Device.CUDA.value
    CPU = Device.CPU.value


Script = Annotated[
    str | None,
    typer.Argument(
        metavar="SCRIPT", help="The Python script or the notebook to run; it is not changed.", show_default=False
    ),
]
Arguments = Annotated[
    list[str] | None, typer.Argument(metavar="[-- ARG...]", help="The script's own arguments, after `--`.")
]
ModuleName = Annotated[
    str,
    typer.Option(
        "-m",
        "--module",
        metavar="MODULE",
        help="Run this module, as `python -m` does, in place of a script.",
        show_default=False,
    ),
]
DeviceOption = Annotated[
    DeviceChoice,
    typer.Option(
        help="Where to run. auto takes the first that is there, in the order of this list.", show_choices=True
    ),
]
Modes = Annotated[
    list[Mode] | None,
    typer.Option(
        help="Mode to measure; repeatable. Default: eager, fused and compiled on a TPU, else eager and compiled. "
        "compiled-fused has fused eager around what is compiled; compiled-step compiles the optimizer's step too."
    ),
]
CompileTargets = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="What the compiled modes compile in place of the outermost models; repeatable. The class of a module, "
        "a function or method of the script, or MODULE:ATTRIBUTE, as in utils:train_step.",
        show_default=False,
    ),
]
Repeat = Annotated[
    int, typer.Option(min=1, help="Runs of each mode, in fresh processes; the times are over all of them.")
]
Ranks = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Start N ranks on this machine, as torchrun would; each is measured, and the report compares them.",
        show_default=False,
    ),
]
StepCount = Annotated[int, typer.Option(min=1, help="Steps to time in each mode.")]
Warmup = Annotated[
    int,
    typer.Option(min=1, help="Least number of warm-up steps; warm-up ends with a step that compiles nothing new."),
]
Timeout = Annotated[float, typer.Option(min=1, help="Time limit of each mode, in seconds.")]
MemoryLimit = Annotated[
    float | None,
    typer.Option(
        min=0.5, metavar="GIB", help="Memory that each process of the script may allocate.", show_default="no limit"
    ),
]
CheckedSteps = Annotated[
    int,
    typer.Option(
        min=0,
        metavar="STEPS",
        help="Compare losses, outputs of modules and gradients of this many first steps with a run of their own on "
        "the CPU in float32, and name the first module that differs. 0: compare the losses of the modes only.",
    ),
]
LargestBatch = Annotated[
    str,
    typer.Option(
        "--largest-batch",
        metavar="NAME",
        help="Find the largest batch whose step fits each --chip, by short runs at other sizes. NAME is the "
        "script's own argument that sets the size, as in --largest-batch=--batch-size; it has to be given.",
        show_default=False,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Session folder. Default: tpuport-session-<time> in this directory."),
]
StepEnd = Annotated[
    StepSource,
    typer.Option(help="What ends a step. auto: the optimizer if the script builds one, else a model call."),
]
Seed = Annotated[int, typer.Option(help="Seed of Python, numpy and torch, the same in every mode.")]
Trace = Annotated[
    bool,
    typer.Option(
        "--trace",
        help=f"Trace {TRACED_STEPS} steps more in each mode, after the timed ones, for TensorBoard; with --chip "
        "the programs compiled for it are kept for its graph viewer.",
    ),
]
