"""`tpuport profile`."""

import os
from datetime import datetime
from pathlib import Path

import typer
from rich.console import Console

from tpuport.cli.chips import ChipOption, chosen_chips
from tpuport.cli.limits import FailOn, enforce, limits
from tpuport.cli.profile_options import (
    TRACED_STEPS,
    Arguments,
    CheckedSteps,
    CompileTargets,
    DeviceChoice,
    DeviceOption,
    LargestBatch,
    MemoryLimit,
    Modes,
    ModuleName,
    Output,
    Ranks,
    Repeat,
    Script,
    Seed,
    StepCount,
    StepEnd,
    Timeout,
    Trace,
    Warmup,
)
from tpuport.cli.profile_program import Command, named_program
from tpuport.cli.report_formats import FormatOption, JsonOption, ReportFormat, print_report
from tpuport.cli.watches import BatchWatch, CompileWatch, RunWatch
from tpuport.errors import INTERRUPTED, ExitCode, UsageError
from tpuport.profile.analyses import analyse
from tpuport.profile.batch_argument import batch_size
from tpuport.profile.engine import compile_for_chips, keep_sources, prepare_folder, run_session
from tpuport.profile.largest_batch import find_largest_batch
from tpuport.profile.launch import check_ranks
from tpuport.profile.layout import as_typed
from tpuport.profile.machine import choose_device
from tpuport.profile.plan import Device, Mode, Plan, StepSource, default_modes
from tpuport.profile.session import Session

__all__ = ("Command", "profile")
_COUNTED_STEPS = 2
_WARMUP_LIMIT = 50


def profile(
    script: Script = None,
    arguments: Arguments = None,
    module: ModuleName = "",
    device: DeviceOption = DeviceChoice.AUTO,
    mode: Modes = None,
    compile_target: CompileTargets = None,
    repeat: Repeat = 1,
    nproc: Ranks = None,
    steps: StepCount = 10,
    warmup: Warmup = 3,
    timeout: Timeout = 900,
    memory_limit: MemoryLimit = None,
    check_numbers: CheckedSteps = 0,
    chip: ChipOption = None,
    largest_batch: LargestBatch = "",
    output: Output = None,
    step_on: StepEnd = StepSource.AUTO,
    seed: Seed = 0,
    trace: Trace = False,
    fail_on: FailOn = None,
    output_format: FormatOption = ReportFormat.TEXT,
    json: JsonOption = False,
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
    program = named_program(script, arguments or [], module)
    thresholds = limits(fail_on, program.file)
    chosen = _device(device, mode or [])
    check_ranks(nproc, chosen)
    plan = Plan(
        script=str(program.file),
        script_as_given=program.as_given,
        arguments=program.arguments,
        directory=os.getcwd(),
        device=chosen,
        modes=tuple(dict.fromkeys(mode or ())) or default_modes(chosen),
        steps=steps,
        warmup=warmup,
        warmup_limit=max(warmup, _WARMUP_LIMIT),
        counted=_COUNTED_STEPS if chosen.is_tpu else 0,
        timeout_s=timeout,
        seed=seed,
        step_source=step_on,
        module=program.module,
        checked_steps=check_numbers,
        memory_limit=None if memory_limit is None else int(memory_limit * 2**30),
        traced=TRACED_STEPS if trace else 0,
        compile_targets=tuple(dict.fromkeys(compile_target or ())),
        repeat=repeat,
        batch_argument=largest_batch,
        ranks=nproc,
    )
    chips = chosen_chips(chip, plan)
    _check_batch_argument(plan, chips)
    folder = (output or Path(f"tpuport-session-{datetime.now():%Y%m%d-%H%M%S}")).absolute()
    prepare_folder(folder)
    console = Console(stderr=True, highlight=False)
    session = _measured(plan, folder, chips, console)
    report = analyse(session)
    try:
        keep_sources(session, report)
    except OSError as error:
        console.print(f"the session is without the source's text: {error.strerror}", soft_wrap=True, markup=False)
    print_report(session, report, ReportFormat.JSON if json else output_format)
    console.print(f"Saved; show it again with: tpuport report {as_typed(folder)}", soft_wrap=True, markup=False)
    if not report.modes.measured:
        raise typer.Exit(ExitCode.PROGRAM_FAILED)
    enforce(thresholds, report, plan)


def _device(choice: DeviceChoice, modes: list[Mode]) -> Device:
    chosen = choose_device(None if choice is DeviceChoice.AUTO else Device(choice.value))
    if not chosen.is_tpu and (unknown := [mode.value for mode in modes if mode.defers]):
        raise UsageError(
            f"mode {', '.join(unknown)} exists on a TPU only, and the device is {chosen.value}",
            hint="Use --device emulated-tpu, or the modes eager and compiled.",
        )
    return chosen


def _check_batch_argument(plan: Plan, chips: tuple[str, ...]) -> None:
    if not plan.batch_argument:
        return
    batch_size(plan.arguments, plan.batch_argument)
    if not chips:
        raise UsageError("--largest-batch asks what fits a chip, and none is named", hint="Name one, as in --chip v6e.")


def _measured(plan: Plan, folder: Path, chips: tuple[str, ...], console: Console) -> Session:
    """Run and compile all that `plan` asks for; an interruption ends the command, with what there is saved."""
    try:
        session = run_session(plan, folder, RunWatch(console, plan))
        if chips:
            session = compile_for_chips(session, chips, CompileWatch(console, chips))
        if plan.batch_argument:
            session = find_largest_batch(session, chips, BatchWatch(console, plan))
    except KeyboardInterrupt:
        console.print(
            f"interrupted; what was measured until now is in {as_typed(folder)}", soft_wrap=True, markup=False
        )
        raise typer.Exit(INTERRUPTED) from None
    return session
