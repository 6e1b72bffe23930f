"""`tpuport profile`."""

import os
import shlex
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tpuport.cli.chips import CHIP_HELP, CompileWatch, chosen_chips
from tpuport.cli.limits import FailOn, enforce, limits
from tpuport.cli.report_formats import ReportFormat, print_report
from tpuport.errors import ExitCode, UsageError
from tpuport.profile.chips.specs import ChipName
from tpuport.profile.engine import compile_for_chips, prepare_folder, report_on, run_session
from tpuport.profile.machine import choose_device
from tpuport.profile.plan import Device, Mode, Plan, StepSource, default_modes
from tpuport.profile.runner import ProcessExit

_COUNTED_STEPS = 2
_WARMUP_LIMIT = 50


class DeviceChoice(StrEnum):
    """A device, or the best that the machine has."""

    AUTO = "auto"
    TPU = Device.TPU.value
    EMULATED_TPU = Device.EMULATED_TPU.value
    CUDA = Device.CUDA.value
    CPU = Device.CPU.value


def profile(
    script: Annotated[
        Path, typer.Argument(metavar="SCRIPT", help="The Python script to run; it is not changed.", show_default=False)
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARG...]", help="The script's own arguments, after `--`.")
    ] = None,
    device: Annotated[
        DeviceChoice,
        typer.Option(
            help="Where to run. auto takes the first that is there, in the order of this list.", show_choices=True
        ),
    ] = DeviceChoice.AUTO,
    mode: Annotated[
        list[Mode] | None,
        typer.Option(
            help="Mode to measure; repeatable. Default: eager, fused and compiled on a TPU, else eager and compiled."
        ),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps to time in each mode.")] = 10,
    warmup: Annotated[
        int,
        typer.Option(min=1, help="Least number of warm-up steps; warm-up ends with a step that compiles nothing new."),
    ] = 3,
    timeout: Annotated[float, typer.Option(min=1, help="Time limit of each mode, in seconds.")] = 900,
    chip: Annotated[list[ChipName] | None, typer.Option(help=CHIP_HELP)] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Session folder. Default: tpuport-session-<time> in this directory."),
    ] = None,
    step_on: Annotated[
        StepSource,
        typer.Option(help="What ends a step. auto: the optimizer if the script builds one, else a model call."),
    ] = StepSource.AUTO,
    seed: Annotated[int, typer.Option(help="Seed of Python, numpy and torch, the same in every mode.")] = 0,
    fail_on: FailOn = None,
    output_format: Annotated[ReportFormat, typer.Option("--format", help="Format of the report.")] = ReportFormat.TEXT,
    json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
) -> None:
    """Run a script in eager, fused and compiled mode and report what each gains and where it loses.

    Every mode runs in a process of its own. Steps are found without a change to the script: an optimizer's step(), or
    in a script without one the outermost call of a model. The script is stopped once enough steps are measured.

    The report: step times, executions and programs a step, graphs, every graph break and recompile with its line, and
    whether all modes compute the same losses. It is saved, and `tpuport report` shows it again.

    With --chip the programs of a step also go through the real TPU compiler, for which no TPU is needed: estimated
    time on the device, what bounds it, memory, and what each line of the source costs.

    Exit codes: 0 measured, 1 a limit (--fail-on, budgets) is not kept, 2 wrong usage, 3 the script failed in eager mode
    or in all modes.
    """
    thresholds = limits(fail_on, script)
    plan = _plan(script, arguments or [], device, mode or [], steps, warmup, timeout, step_on, seed)
    folder = (output or Path(f"tpuport-session-{datetime.now():%Y%m%d-%H%M%S}")).absolute()
    chips = chosen_chips(chip, plan)
    prepare_folder(folder)
    console = Console(stderr=True, highlight=False)
    try:
        session = run_session(plan, folder, _Watch(console, plan))
        if chips:
            session = compile_for_chips(session, chips, CompileWatch(console, chips))
    except KeyboardInterrupt:
        console.print(f"interrupted; what was measured until now is in {_shown(folder)}", soft_wrap=True, markup=False)
        raise
    report = report_on(session)
    print_report(session, report, ReportFormat.JSON if json else output_format)
    console.print(f"Saved; show it again with: tpuport report {_shown(folder)}", soft_wrap=True, markup=False)
    if not report.modes.measured:
        raise typer.Exit(ExitCode.PROGRAM_FAILED)
    enforce(thresholds, report, plan)


def _plan(
    script: Path,
    arguments: list[str],
    device: DeviceChoice,
    modes: list[Mode],
    steps: int,
    warmup: int,
    timeout_s: float,
    step_source: StepSource,
    seed: int,
) -> Plan:
    _check_script(script)
    chosen = choose_device(None if device is DeviceChoice.AUTO else Device(device.value))
    if not chosen.is_tpu and (unknown := [mode.value for mode in modes if mode.defers]):
        raise UsageError(
            f"mode {', '.join(unknown)} exists on a TPU only, and the device is {chosen.value}",
            hint="Use --device emulated-tpu, or the modes eager and compiled.",
        )
    return Plan(
        script=str(script.absolute()),
        script_as_given=str(script),
        arguments=tuple(arguments),
        directory=os.getcwd(),
        device=chosen,
        modes=tuple(dict.fromkeys(modes)) or default_modes(chosen),
        steps=steps,
        warmup=warmup,
        warmup_limit=max(warmup, _WARMUP_LIMIT),
        counted=_COUNTED_STEPS if chosen.is_tpu else 0,
        timeout_s=timeout_s,
        seed=seed,
        step_source=step_source,
    )


def _check_script(script: Path) -> None:
    if script.is_dir():
        raise UsageError(f"{script} is a directory", hint="Name the Python script to run.")
    if script.suffix == ".ipynb":
        raise UsageError(
            f"{script} is a notebook, which cannot be profiled yet",
            hint="Turn it into a script first: jupyter nbconvert --to script.",
        )
    try:
        head = script.open("rb").read(4096)
    except OSError as error:
        raise UsageError(f"{script} can't be read: {error.strerror}", hint="Name the Python script to run.") from None
    if b"\0" in head:
        raise UsageError(f"{script} is not a Python script: it holds binary data")


def _shown(folder: Path) -> str:
    """Return `folder` as it is best typed: relative where it is below the current directory, quoted where needed."""
    here = Path.cwd()
    return shlex.quote(str(folder.relative_to(here) if folder.is_relative_to(here) else folder))


class _Watch:
    """Says on standard error which mode runs, and how its process ended."""

    def __init__(self, console: Console, plan: Plan) -> None:
        self._console = console
        self._plan = plan

    def __call__(self, mode: Mode, end: ProcessExit | None) -> None:
        number = self._plan.modes.index(mode) + 1
        head = f"[{number}/{len(self._plan.modes)}] {mode.value} on {self._plan.device.value}"
        if end is None:
            self._console.print(f"{head}: running", markup=False)
        else:
            self._console.print(f"{head}: {end.seconds:.0f} s", markup=False)
