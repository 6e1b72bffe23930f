"""`tpuport profile`."""

import os
import shlex
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core
from rich.console import Console

from tpuport.cli.chips import CHIP_HELP, CompileWatch, chosen_chips
from tpuport.cli.limits import FailOn, enforce, limits
from tpuport.cli.report_formats import ReportFormat, print_report
from tpuport.errors import INTERRUPTED, ExitCode, UsageError
from tpuport.nearest import did_you_mean
from tpuport.profile.batch_argument import batch_size
from tpuport.profile.batch_search import MAX_RUNS
from tpuport.profile.chips.specs import ChipName
from tpuport.profile.engine import compile_for_chips, prepare_folder, report_on, run_session
from tpuport.profile.largest_batch import find_largest_batch
from tpuport.profile.launch import check_ranks
from tpuport.profile.layout import REFERENCE, as_typed
from tpuport.profile.locate import check_script, find_module
from tpuport.profile.machine import choose_device
from tpuport.profile.notebooks import SUFFIX
from tpuport.profile.plan import Device, Mode, Plan, StepSource, default_modes

_CLICK_ERROR: Any = typer.BadParameter.__base__
"""Of the click that this typer brings with it: wrong usage of any kind."""
_COUNTED_STEPS = 2
_WARMUP_LIMIT = 50
_TRACED_STEPS = 3


class DeviceChoice(StrEnum):
    """A device, or the best that the machine has."""

    AUTO = "auto"
    TPU = Device.TPU.value
    EMULATED_TPU = Device.EMULATED_TPU.value
    CUDA = Device.CUDA.value
    CPU = Device.CPU.value


def profile(
    script: Annotated[
        str | None,
        typer.Argument(
            metavar="SCRIPT", help="The Python script or the notebook to run; it is not changed.", show_default=False
        ),
    ] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARG...]", help="The script's own arguments, after `--`.")
    ] = None,
    module: Annotated[
        str,
        typer.Option(
            "-m",
            "--module",
            metavar="MODULE",
            help="Run this module, as `python -m` does, in place of a script.",
            show_default=False,
        ),
    ] = "",
    device: Annotated[
        DeviceChoice,
        typer.Option(
            help="Where to run. auto takes the first that is there, in the order of this list.", show_choices=True
        ),
    ] = DeviceChoice.AUTO,
    mode: Annotated[
        list[Mode] | None,
        typer.Option(
            help="Mode to measure; repeatable. Default: eager, fused and compiled on a TPU, else eager and compiled. "
            "compiled-fused has fused eager around what is compiled; compiled-step compiles the optimizer's step too."
        ),
    ] = None,
    compile_target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="What the compiled modes compile in place of the outermost models; repeatable. The class of a module, "
            "a function or method of the script, or MODULE:ATTRIBUTE, as in utils:train_step.",
            show_default=False,
        ),
    ] = None,
    repeat: Annotated[
        int, typer.Option(min=1, help="Runs of each mode, in fresh processes; the times are over all of them.")
    ] = 1,
    nproc: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Start N ranks on this machine, as torchrun would; each is measured, and the report compares them.",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps to time in each mode.")] = 10,
    warmup: Annotated[
        int,
        typer.Option(min=1, help="Least number of warm-up steps; warm-up ends with a step that compiles nothing new."),
    ] = 3,
    timeout: Annotated[float, typer.Option(min=1, help="Time limit of each mode, in seconds.")] = 900,
    memory_limit: Annotated[
        float | None,
        typer.Option(
            min=0.5, metavar="GIB", help="Memory that each process of the script may allocate.", show_default="no limit"
        ),
    ] = None,
    check_numbers: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="STEPS",
            help="Compare losses, outputs of modules and gradients of this many first steps with a run of their own on "
            "the CPU in float32, and name the first module that differs. 0: compare the losses of the modes only.",
        ),
    ] = 0,
    chip: Annotated[list[ChipName] | None, typer.Option(help=CHIP_HELP)] = None,
    largest_batch: Annotated[
        str,
        typer.Option(
            "--largest-batch",
            metavar="NAME",
            help="Find the largest batch whose step fits each --chip, by short runs at other sizes. NAME is the "
            "script's own argument that sets the size, as in --largest-batch=--batch-size; it has to be given.",
            show_default=False,
        ),
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Session folder. Default: tpuport-session-<time> in this directory."),
    ] = None,
    step_on: Annotated[
        StepSource,
        typer.Option(help="What ends a step. auto: the optimizer if the script builds one, else a model call."),
    ] = StepSource.AUTO,
    seed: Annotated[int, typer.Option(help="Seed of Python, numpy and torch, the same in every mode.")] = 0,
    trace: Annotated[
        bool,
        typer.Option(
            "--trace",
            help=f"Trace {_TRACED_STEPS} steps more in each mode, after the timed ones, for TensorBoard; with --chip "
            "the programs compiled for it are kept for its graph viewer.",
        ),
    ] = False,
    fail_on: FailOn = None,
    output_format: Annotated[ReportFormat, typer.Option("--format", help="Format of the report.")] = ReportFormat.TEXT,
    json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
) -> None:
    """Run a script in eager, fused and compiled mode and report what each gains and where it loses.

    SCRIPT may be a notebook: its cells run one after the other, without the lines that only IPython understands. With
    -m MODULE a module runs instead, and all arguments are its own.

    Every mode runs in a process of its own. Steps are found without a change to the script: an optimizer's step(), or
    in a script without one the outermost call of a model. The script is stopped once enough steps are measured.

    What torchrun starts takes --nproc N instead: tpuport starts the ranks itself, with what a TPU needs for it.

    The report: step times, executions and programs a step, graphs, every graph break and recompile with its line, and
    whether all modes compute the same losses. It is saved, and `tpuport report` shows it again.

    With --largest-batch the script runs at up to six batch sizes more, a few steps each.

    With --chip the programs of a step also go through the real TPU compiler, for which no TPU is needed: estimated
    time on the device, what bounds it, memory, and what each line of the source costs.

    Exit codes: 0 measured, 1 a limit (--fail-on, budgets) is not kept, 2 wrong usage, 3 the script failed in eager mode
    or in all modes.
    """
    program = _program(script, arguments or [], module)
    thresholds = limits(fail_on, program.file)
    plan = _plan(program, device, mode or [], steps, warmup, timeout, step_on, seed)
    check_ranks(nproc, plan.device)
    memory = None if memory_limit is None else int(memory_limit * 2**30)
    targets = tuple(dict.fromkeys(compile_target or []))
    plan = replace(plan, compile_targets=targets, repeat=repeat, ranks=nproc, memory_limit=memory)
    plan = replace(plan, checked_steps=check_numbers, batch_argument=largest_batch)
    if trace:
        plan = replace(plan, traced=_TRACED_STEPS)
    folder = (output or Path(f"tpuport-session-{datetime.now():%Y%m%d-%H%M%S}")).absolute()
    chips = chosen_chips(chip, plan)
    if largest_batch:
        batch_size(plan.arguments, largest_batch)
        if not chips:
            raise UsageError(
                "--largest-batch asks what fits a chip, and none is named", hint="Name one, as in --chip v6e."
            )
    prepare_folder(folder)
    console = Console(stderr=True, highlight=False)
    try:
        session = run_session(plan, folder, _Watch(console, plan))
        if chips:
            session = compile_for_chips(session, chips, CompileWatch(console, chips))
        if largest_batch:
            session = find_largest_batch(session, chips, _BatchWatch(console, plan))
    except KeyboardInterrupt:
        console.print(
            f"interrupted; what was measured until now is in {as_typed(folder)}", soft_wrap=True, markup=False
        )
        raise typer.Exit(INTERRUPTED) from None
    report = report_on(session)
    print_report(session, report, ReportFormat.JSON if json else output_format)
    console.print(f"Saved; show it again with: tpuport report {as_typed(folder)}", soft_wrap=True, markup=False)
    if not report.modes.measured:
        raise typer.Exit(ExitCode.PROGRAM_FAILED)
    enforce(thresholds, report, plan)


@dataclass(frozen=True, slots=True)
class _Program:
    """What is to run: `file` is absolute, `as_given` what reports call it."""

    file: Path
    as_given: str
    arguments: tuple[str, ...]
    module: str = ""


def _program(script: str | None, arguments: list[str], module: str) -> _Program:
    if module:
        # With -m there is no script: what stands in its place is the first argument.
        own = arguments if script is None else [script, *arguments]
        return _Program(find_module(module, Path.cwd()), f"-m {module}", tuple(own), module)
    if script is None:
        raise UsageError(
            "nothing to profile was named", hint="Type: tpuport profile SCRIPT, or tpuport profile -m MODULE"
        )
    path = Path(script)
    check_script(path)
    return _Program(path.absolute(), script, tuple(arguments))


def _plan(
    program: _Program,
    device: DeviceChoice,
    modes: list[Mode],
    steps: int,
    warmup: int,
    timeout_s: float,
    step_source: StepSource,
    seed: int,
) -> Plan:
    chosen = choose_device(None if device is DeviceChoice.AUTO else Device(device.value))
    if not chosen.is_tpu and (unknown := [mode.value for mode in modes if mode.defers]):
        raise UsageError(
            f"mode {', '.join(unknown)} exists on a TPU only, and the device is {chosen.value}",
            hint="Use --device emulated-tpu, or the modes eager and compiled.",
        )
    return Plan(
        script=str(program.file),
        script_as_given=program.as_given,
        arguments=program.arguments,
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
        module=program.module,
    )


class Command(typer.core.TyperCommand):
    """`tpuport profile`; an option that it does not have was meant for the script."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line.

        Raises UsageError for an unknown option, with the command line that gives it to the script.
        """
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except _CLICK_ERROR as error:
            if not hasattr(error, "possibilities"):
                raise
            known = {name for parameter in self.params for name in parameter.opts}
            raise UsageError(
                f"tpuport profile has no option {error.option_name}{did_you_mean(error.option_name, known)}",
                hint=f"The script's own arguments come after `--`: {_separated(given, known)}",
            ) from None


def _separated(given: list[str], known: set[str]) -> str:
    """Return the command line with the options that tpuport does not know, and their values, after `--`."""
    command, own = ["tpuport", "profile"], list[str]()
    end = given.index("--") if "--" in given else len(given)
    head, tail = given[:end], given[end + 1 :]
    target = command
    for word in head:
        if word.startswith("-"):
            target = command if word.partition("=")[0] in known else own
        target.append(word)
    if not any(word == "-m" or word.endswith((".py", SUFFIX)) for word in command):
        return "tpuport profile SCRIPT -- ARG..."
    return shlex.join([*command, "--", *own, *tail])


class _Watch:
    """Says on standard error which mode runs, and how long it took."""

    def __init__(self, console: Console, plan: Plan) -> None:
        self._console = console
        self._plan = plan

        self._started = 0

    def __call__(self, name: str, seconds: float | None) -> None:
        plan = self._plan
        self._started += seconds is None
        total = len(plan.modes) * plan.repeat + bool(plan.checked_steps)
        device = Device.CPU if name == REFERENCE else plan.device
        head = f"[{self._started}/{total}] {name} on {device.value}"
        self._console.print(f"{head}: {'running' if seconds is None else f'{seconds:.0f} s'}", markup=False)


class _BatchWatch:
    """Says on standard error how long each run took that looks for the largest batch."""

    def __init__(self, console: Console, plan: Plan) -> None:
        self._console = console
        self._argument = plan.batch_argument
        self._started = 0

    def __call__(self, name: str, seconds: float | None) -> None:
        self._started += seconds is None
        head = f"largest batch, {self._argument}, run {self._started} of at most {MAX_RUNS}, {name}"
        self._console.print(f"{head}: {'running' if seconds is None else f'{seconds:.0f} s'}", markup=False)
