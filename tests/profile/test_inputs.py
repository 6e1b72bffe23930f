"""Waits for input and operations on the CPU: on made-up sessions, and on a real script with known ones."""

from pathlib import Path
from typing import Any

import pytest

from tests.profile.command import SCRIPTS, Profiled, make_session, profile, tpuport
from tpuport.profile.analyses.inputs import BEFORE, LOADER, InputRow, analyse_inputs
from tpuport.profile.analyses.on_cpu import analyse_on_cpu
from tpuport.profile.plan import Mode
from tpuport.profile.records import (
    BeforeModel,
    CpuOperation,
    CpuReason,
    Frame,
    InputWait,
    Operation,
    Phase,
    Started,
    Step,
    StepPhase,
)
from tpuport.profile.session import load

STARTED = Started("2.13.0", "tpu", ("/lib/",))
LINE = Frame("/project/train.py", 7, "main")
SCRIPT = "inputs.py"
OPTIONS = ("--device", "emulated-tpu", "--steps", "3", "--warmup", "2", "--timeout", "120", "--mode", "eager")


def step(index: int, seconds: float, phase: Phase = Phase.TIMED) -> Step:
    return Step(index, phase, seconds, 0)


def waits(folder: Path, *records: Any) -> tuple[InputRow, ...]:
    return analyse_inputs(load(make_session(folder / "s", {Mode.EAGER: [STARTED, *records]}))).rows


def test_the_wait_is_that_of_the_median_timed_step(tmp_path: Path) -> None:
    warmup = (InputWait(0, LINE, 1, 9.0), step(0, 10.0, Phase.WARMUP))
    timed = [item for n, s in enumerate((0.4, 0.1, 0.2), 1) for item in (InputWait(n, LINE, 2, s), step(n, 1.0))]
    (row,) = waits(tmp_path, *warmup, *timed)
    assert (row.count, row.seconds.value, row.share) == (2, 0.2, 0.2)
    assert "num_workers" in row.edit


def test_steps_without_a_batch_count_as_no_wait(tmp_path: Path) -> None:
    (row,) = waits(tmp_path, step(0, 1.0), InputWait(1, LINE, 1, 0.5), step(1, 1.0), step(2, 1.0), step(3, 1.0))
    assert (row.count, row.seconds.value) == (1 / 3, 0)


def test_what_passes_before_the_model_is_told_from_a_loader(tmp_path: Path) -> None:
    model = Frame(LINE.file, 9, "main")
    before, loader = waits(
        tmp_path, step(0, 1.0), BeforeModel(1, model, 0.3), InputWait(1, LINE, 1, 0.04), step(1, 1.0)
    )
    assert (before.what, before.place and before.place.line, before.share) == (BEFORE, 9, 0.3)
    assert loader.what == LOADER
    assert before.edit
    assert not loader.edit


def test_a_short_wait_asks_for_nothing(tmp_path: Path) -> None:
    (row,) = waits(tmp_path, step(0, 1.0), InputWait(1, LINE, 1, 0.01), step(1, 1.0))
    assert (row.share, row.edit) == (0.01, "")


def test_a_script_without_timed_steps_is_told_by_those_it_has(tmp_path: Path) -> None:
    early = (step(0, 1.0, Phase.WARMUP), InputWait(1, LINE, 1, 0.5), step(1, 1.0, Phase.WARMUP))
    (row,) = waits(tmp_path, *early)
    assert row.seconds.value == 0.5


def test_an_operation_that_the_runtime_ran_on_the_cpu_has_its_line(tmp_path: Path) -> None:
    seen = Operation("copysign", "Net|h.0", LINE, StepPhase.FORWARD, 3, {0: 1})
    other = Operation("add", "Net|h.0", LINE, StepPhase.FORWARD, 1, {1: 1})
    path = make_session(tmp_path / "s", {Mode.EAGER: [STARTED, seen, other, step(0, 1.0, Phase.WATCHED)]})
    log = "W0000 kernels.cc:1] operator 'aten::copysign.out' is not implemented for TPU. Falling back to CPU\n"
    (path / "eager" / "stderr.log").write_text(log)
    found = analyse_on_cpu(load(path))
    assert found.watched
    assert [(row.operation, row.count, row.reason, str(row.module)) for row in found.rows] == [
        ("copysign", 3, CpuReason.FALLBACK, "Net.h.0")
    ]


def test_rows_stand_in_the_order_of_the_source(tmp_path: Path) -> None:
    lines = (Frame(LINE.file, number, "main") for number in (9, 3))
    records = [CpuOperation("abs", CpuReason.FROM_DEVICE, "", frame, 1) for frame in lines]
    rows = analyse_on_cpu(load(make_session(tmp_path / "s", {Mode.EAGER: [STARTED, *records]}))).rows
    assert [row.place and row.place.line for row in rows] == [3, 9]


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Profiled:
    return profile(tmp_path_factory.mktemp("inputs"), SCRIPT, *OPTIONS)


def line_of(text: str) -> int:
    lines = (SCRIPTS / SCRIPT).read_text(encoding="utf-8").splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if text in line]
    return number


def test_the_real_wait_is_at_its_line_and_as_long_as_it_is(profiled: Profiled) -> None:
    assert profiled.result.code == 0, profiled.result.err
    rows = {row["what"]: row for row in profiled.result.document["inputs"]["rows"]}
    loader, before = rows.pop(LOADER), rows.pop(BEFORE)
    assert not rows
    assert (loader["place"]["line"], loader["count"]) == (line_of("in DataLoader("), 1)
    assert (before["place"]["line"], before["count"]) == (line_of("loss = model("), 1)
    step_time = profiled.row("modes", "eager")["step_time"]["median"]["value"]
    assert 0.02 <= loader["seconds"]["value"] <= step_time
    # The batch of the DataLoader is not counted again.
    assert 0.03 <= before["seconds"]["value"] <= step_time - loader["seconds"]["value"]


def test_exactly_the_operations_on_the_cpu_are_told(profiled: Profiled) -> None:
    rows = profiled.result.document["on_cpu"]["rows"]
    assert [(row["place"]["line"], row["operation"], row["reason"], row["count"]) for row in rows] == [
        (line_of("z.abs()"), "abs", "from-device", 1),
        (line_of("torch.arange(8)"), "arange", "in-model", 1),
        (line_of("torch.copysign("), "copysign", "fallback", 1),
        (line_of("loss.detach().cpu() * 2"), "mul", "from-device", 1),
    ]


@pytest.mark.parametrize("format_", ["text", "markdown", "html"])
def test_every_format_shows_them(profiled: Profiled, format_: str) -> None:
    shown = tpuport("report", profiled.session, "--format", format_, cwd=profiled.session.parent)
    assert shown.code == 0, shown.err
    assert "Waits for input" in shown.out
    assert "Operations on the CPU in a step: 4" in shown.out


def test_workers_that_start_in_a_watched_step_leave_the_device_alone(tmp_path: Path) -> None:
    run = profile(tmp_path, "workers.py", *OPTIONS)
    assert run.result.code == 0, run.result.err
    assert run.row("modes", "eager")["step_time"]["steps"] == 3


def test_what_a_worker_raises_is_told_with_its_line(tmp_path: Path) -> None:
    options = ("--device", "cpu", "--steps", "3", "--warmup", "2", "--timeout", "120", "--mode", "eager")
    run = profile(tmp_path, "workers.py", *options, arguments=("fails",))
    assert run.result.code == 3
    failure = run.failure("eager")
    said = "ValueError: Caught ValueError in DataLoader worker process 0: ValueError: row 0 is damaged (after 2 steps)"
    assert failure["what"] == said
    assert failure["place"]["line"] == 18
