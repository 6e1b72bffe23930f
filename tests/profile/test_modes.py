from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.profile.command import make_plan, make_session
from tpuport.profile.analyses.modes import ModeRow, analyse_modes
from tpuport.profile.analyses.programs import analyse_programs
from tpuport.profile.chips.estimates import SourceFrame
from tpuport.profile.contents import Contents, Located
from tpuport.profile.figures import Basis, Figure
from tpuport.profile.places import Place
from tpuport.profile.plan import Device, Mode
from tpuport.profile.records import (
    WARMUP_LIMIT,
    Ended,
    Enough,
    Frame,
    FrameCompiled,
    Note,
    Phase,
    Program,
    Root,
    Started,
    Step,
)
from tpuport.profile.runner import ExitKind, ProcessExit
from tpuport.profile.session import Session, load

STARTED = Started("2.13.0", "tpu", ("/lib/",))
PROGRAM = Program(9, "c", 10, 0.0, False)
SILENT = "without saying why"
LINE = Frame("/project/train.py", 12, "main")


def step(index: int, phase: Phase, seconds: float, compiled: int = 0, **more: Any) -> Step:
    return Step(index, phase, seconds, compiled, **more)


def one(
    folder: Path, *records: object, mode: Mode = Mode.EAGER, end: ProcessExit | None = None, **plan: Any
) -> Session:
    exits = {mode: end} if end else None
    return load(
        make_session(folder / "s", {mode: [STARTED, *records]}, plan=make_plan(modes=(mode,), **plan), exits=exits)
    )


def row(session: Session) -> ModeRow:
    return analyse_modes(session).rows[0]


def failure(session: Session) -> str:
    found = row(session).failure
    assert found is not None
    return f"{found.place}: {found.what}" if found.place else found.what


STEPS = (
    PROGRAM,
    step(0, Phase.WARMUP, 9.0, 5),
    step(1, Phase.COUNTED, 0.5, executions={0: 2, 1: 3}),
    step(2, Phase.TIMED, 0.1),
    step(3, Phase.TIMED, 0.3),
    step(4, Phase.TIMED, 0.2),
)


def test_what_is_compiled_anew_in_every_step_is_named_with_its_line(tmp_path: Path) -> None:
    frames = (SourceFrame("/project/train.py", 12, "main", 0), SourceFrame("/project/train.py", 13, "main", 0))
    held = {
        "c": Contents(4, 4, 0, frames, (Located(1, "embedding"),)),
        "d": Contents(4, 4, 0, frames, (Located(2, "add"),)),
    }
    records = (
        step(0, Phase.WARMUP, 9.0, 5),
        Note(WARMUP_LIMIT, "every step still compiles"),
        Program(1, "c", 10, 0.0, False),
        Program(2, "d", 10, 0.0, False),
        step(1, Phase.COUNTED, 0.5, 2, executions={1: 1, 2: 1}),
        Program(3, "c", 10, 0.0, False),
        step(2, Phase.COUNTED, 0.5, 1, executions={2: 1, 3: 1}),
    )
    saved = replace(one(tmp_path, *records, Ended("finished")), contents=held)
    *_, remark = row(saved).remarks
    assert remark.text.startswith("compiled anew in every step: `embedding` at train.py:12. A slice")


def test_timed_steps_give_the_step_time(tmp_path: Path) -> None:
    found = row(one(tmp_path, *STEPS, Enough(), Ended("enough")))
    assert found.failure is None
    assert found.step_time is not None
    assert found.step_time.median == Figure(0.2, "s", Basis.EMULATED)
    assert (found.step_time.lowest.value, found.step_time.highest.value, found.step_time.steps) == (0.1, 0.3, 3)


def test_on_other_devices_times_are_measured(tmp_path: Path) -> None:
    found = row(one(tmp_path, *STEPS, Enough(), device=Device.CPU))
    assert found.step_time is not None
    assert found.step_time.median.basis is Basis.MEASURED


def test_executions_are_those_of_a_counted_step(tmp_path: Path) -> None:
    records = (*STEPS, Program(0, "a", 10, 0.25, False), Program(1, "b", 10, 0.5, False), Enough())
    found = analyse_programs(one(tmp_path, *records)).rows[0]
    assert found.executions == Figure(5, "", Basis.MEASURED)
    assert found.distinct == Figure(2, "", Basis.MEASURED)
    assert found.compiled == Figure(3, "", Basis.MEASURED)
    assert found.compile_time == Figure(0.75, "s", Basis.EMULATED)


def test_a_script_that_ends_early_is_measured_on_what_it_had(tmp_path: Path) -> None:
    records = (PROGRAM, step(0, Phase.WARMUP, 9.0, 5), step(1, Phase.WARMUP, 2.0, 1), step(2, Phase.WARMUP, 0.2))
    found = row(one(tmp_path, *records, Ended("finished")))
    assert found.failure is None
    assert found.step_time is not None
    assert found.step_time.median.value == 0.2
    assert "ended after 3 steps" in found.remarks[0].text


def test_a_single_step_has_no_time(tmp_path: Path) -> None:
    found = row(one(tmp_path, PROGRAM, step(0, Phase.WARMUP, 9.0, 5), Ended("finished")))
    assert (found.failure, found.step_time) == (None, None)


@pytest.mark.parametrize(
    ("records", "end", "expected"),
    [
        ((Ended("raised", 1, "ValueError\nx", LINE),), None, "train.py:12: ValueError (before its first step)"),
        ((*STEPS, Ended("raised", 1, "ValueError: bad", LINE)), None, "train.py:12: ValueError: bad (after 5 steps)"),
        ((Ended("exit", 3, frame=LINE),), None, "train.py:12: the script called sys.exit(3) before its first step"),
        ((Ended("exit", 0, frame=LINE),), None, "train.py:12: the script called sys.exit(0) before its first step"),
        ((Ended("finished"),), None, "the script ended without a step"),
        ((Ended("os-exit", 7, frame=LINE),), None, "train.py:12: the script called os._exit(7) before its first step"),
        ((), ProcessExit(ExitKind.SIGNAL, 9, 1), "the process was ended by SIGKILL before its first step"),
        ((), ProcessExit(ExitKind.SIGNAL, 40, 1), "the process was ended by 40 before its first step"),
        (STEPS[:2], ProcessExit(ExitKind.TIMEOUT, -9, 1), "the time limit of 10 s was reached after 1 step"),
        ((), ProcessExit(ExitKind.INTERRUPTED, -9, 1), "interrupted before its first step"),
        ((), ProcessExit(ExitKind.EXITED, 4, 1), "the process exited with status 4 before its first step, " + SILENT),
        ((Ended("setup", 1, "OSError: no plugin"),), None, "the device could not be set up: OSError: no plugin"),
    ],
)  # fmt: skip
def test_failures_say_what_happened_where(
    tmp_path: Path, records: tuple[object, ...], end: ProcessExit | None, expected: str
) -> None:
    assert failure(one(tmp_path, *records, end=end)) == expected


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        ("ModuleNotFoundError: No module named 'omegaconf'", "the environment that tpuport is installed in"),
        ("RuntimeError: Distributed package doesn't have NCCL built in", "which backend it has: `tpuport migrate`"),
        ("ValueError: env:// rendezvous: environment variable RANK expected, but not set", "`--nproc N`"),
        ("KeyError: 'LOCAL_RANK'", "`--nproc N`"),
        ("AssertionError: Torch not compiled with CUDA enabled", "`tpuport migrate`"),
    ],
)
def test_an_error_that_is_known_says_what_to_do(tmp_path: Path, error: str, hint: str) -> None:
    found = row(one(tmp_path, Ended("raised", 1, error, LINE))).failure
    assert found is not None
    assert hint in found.hint


@pytest.mark.parametrize("ended", [Ended("exit", 0), Ended("os-exit", 0), Ended("finished")])
def test_a_clean_exit_after_steps_is_no_failure(tmp_path: Path, ended: Ended) -> None:
    assert row(one(tmp_path, *STEPS, ended)).failure is None


def test_what_happens_after_enough_steps_does_not_matter(tmp_path: Path) -> None:
    session = one(tmp_path, *STEPS, Enough(), end=ProcessExit(ExitKind.SIGNAL, 6, 1))
    assert row(session).failure is None


LOG = """\
  0%| | 0/3E0000 00:00:1796029384.57   184 materialize.cc:5] [Worker] ExecutionTask failed: FAILED_PRECONDITION: \
a required argument is in a failed state
=== Source Location Trace: ===
E0000 00:00:1796029384.58   184 materialize.cc:5] [Worker] ExecutionTask failed: INVALID_ARGUMENT: failed to run \
executable -- the XLA compiler failed with: e0102: RuntimeProgramInputMismatch:
Executable(step) expected parameter 89 of size 568 but got 512

E0000 00:00:1796029384.59   184 materialize.cc:5] [Worker] ExecutionTask failed: INVALID_ARGUMENT: another
"""
FAILED_FIRST = "e0102: RuntimeProgramInputMismatch: Executable(step) expected parameter 89 of size 568 but got 512"


def test_a_view_that_a_compiled_model_refuses_is_told_with_its_remedy(tmp_path: Path) -> None:
    text = "RuntimeError: failed to run executable -- e0102: RuntimeProgramInputMismatch: expected parameter 0"
    found = row(one(tmp_path, *STEPS, Ended("raised", 1, text, LINE))).failure
    assert found is not None
    assert "clone()" in found.hint


def test_an_error_that_only_follows_another_names_the_first(tmp_path: Path) -> None:
    raised = Ended("raised", 1, "RuntimeError: a required argument is in a failed state", LINE)
    one(tmp_path, *STEPS, raised)
    (tmp_path / "s" / "eager" / "stderr.log").write_text(LOG)
    found = row(load(tmp_path / "s")).failure
    assert found is not None
    assert found.what.endswith(f"(after 5 steps); what failed first: {FAILED_FIRST}")
    assert "clone()" in found.hint


def test_an_execution_that_failed_unseen_is_told(tmp_path: Path) -> None:
    one(tmp_path, *STEPS, Enough())
    (tmp_path / "s" / "eager" / "stderr.log").write_text(LOG)
    found = row(load(tmp_path / "s"))
    assert found.failure is None
    assert f"an execution failed, and the script went on: {FAILED_FIRST}" in [remark.text for remark in found.remarks]


def test_a_script_that_never_used_the_tpu_is_a_failure(tmp_path: Path) -> None:
    assert "nothing ran on the TPU" in failure(one(tmp_path, *STEPS[1:], Enough()))


def test_a_script_that_asks_for_cuda_is_sent_to_migrate(tmp_path: Path) -> None:
    error = Ended("raised", 1, "AssertionError: Torch not compiled with CUDA enabled", LINE)
    found = row(one(tmp_path, error)).failure
    assert found is not None
    assert "tpuport migrate" in found.hint


def test_a_compiled_mode_without_a_graph_is_a_failure(tmp_path: Path) -> None:
    assert "no outermost call of an nn.Module" in failure(one(tmp_path, *STEPS, Enough(), mode=Mode.COMPILED))


def test_a_compiled_mode_whose_models_gave_no_graph_is_a_failure(tmp_path: Path) -> None:
    empty = FrameCompiled(0, 0, "f", "f.py", 1, 0, 0.1, None, None)
    session = one(tmp_path, Root("Model", LINE), empty, *STEPS, Enough(), mode=Mode.COMPILED)
    assert "no graph was made" in failure(session)


@pytest.mark.parametrize(
    ("name", "advice"),
    [("median.dim_values", "Write `torch.sort("), ("i0.out", "Write it with others, or compute this on the CPU.")],
)
def test_an_operator_without_a_kernel_is_told_with_what_to_use_instead(tmp_path: Path, name: str, advice: str) -> None:
    text = f"RuntimeError: operator 'aten::{name}' is not implemented for TPU. Please file a feature request"
    found = row(one(tmp_path, Ended("raised", 1, text, LINE))).failure
    assert found is not None
    assert found.hint.startswith(f"A TPU has no kernel for `{name.partition('.')[0]}`. {advice}")
    assert "missing-kernel" in found.hint


@pytest.mark.parametrize(
    ("endings", "measured"),
    [
        ({Mode.EAGER: "finished", Mode.FUSED: "raised"}, True),
        ({Mode.EAGER: "raised", Mode.FUSED: "finished"}, False),
        ({Mode.FUSED: "finished"}, True),
        ({Mode.FUSED: "raised"}, False),
    ],
)
def test_a_session_succeeds_with_eager_mode_and_any_mode(
    tmp_path: Path, endings: dict[Mode, str], measured: bool
) -> None:
    records: dict[Mode, list[Any]] = {mode: [STARTED, *STEPS, Ended(how)] for mode, how in endings.items()}
    assert analyse_modes(load(make_session(tmp_path / "s", records))).measured is measured


def test_places_outside_the_working_directory_are_absolute(tmp_path: Path) -> None:
    session = one(tmp_path, Ended("raised", 1, "E: x", Frame("/elsewhere/a.py", 1, "f")))
    found = row(session).failure
    assert found is not None
    assert found.place == Place("/elsewhere/a.py", 1, "f")


def test_sparse_tensors_are_told_though_the_error_speaks_of_inference(tmp_path: Path) -> None:
    text = "RuntimeError: Inference tensors cannot be saved for backward. Please do not"
    sparse = row(one(tmp_path, Ended("raised", 1, text, LINE, "  output = torch.spmm(adj, support)"))).failure
    assert sparse is not None
    assert "no kernels for sparse tensors" in sparse.hint
    (tmp_path / "other").mkdir()
    other = row(one(tmp_path / "other", Ended("raised", 1, text, LINE, "  loss.backward()"))).failure
    assert other is not None
    assert not other.hint
