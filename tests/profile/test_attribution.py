"""Executions by module, line and operation, on sessions whose programs hold what is known."""

from pathlib import Path
from typing import Any

import pytest

from tests.profile.command import make_session
from tpuport.profile.analyses.costs import attributed_executions
from tpuport.profile.analyses.fusion import analyse_fusion
from tpuport.profile.analyses.modules import ModuleTable, analyse_modules
from tpuport.profile.analyses.programs import analyse_programs
from tpuport.profile.chips.estimates import SourceFrame
from tpuport.profile.codec import encode
from tpuport.profile.contents import Contents, Located
from tpuport.profile.layout import CONTENTS, write_json
from tpuport.profile.modules import MODULE_FILE, Module
from tpuport.profile.phases import StepPhase
from tpuport.profile.places import Place
from tpuport.profile.plan import Mode
from tpuport.profile.records import Frame, Operation, Phase, Program, Started, Step
from tpuport.profile.session import Session, load

STARTED = Started("2.13.0", "tpu", ("/lib/",))
LINE = Frame("/project/model.py", 4, "forward")
PLACE = Place("model.py", 4, "forward")
FIRST, SECOND = "Net|h.0", "Net|h.1"


def contents(*operations: tuple[str, str | None]) -> Contents:
    """Operations, each with the module below which it was made; without one it has no stack at all."""
    frames: list[SourceFrame] = []
    located = []
    for operation, module in operations:
        if module is not None:
            frames.append(SourceFrame(MODULE_FILE, 1, module, 0))
            frames.append(SourceFrame(LINE.file, LINE.line, LINE.function, len(frames)))
        located.append(Located(len(frames) if module is not None else 0, operation))
    return Contents(100, 50, 10, tuple(frames), tuple(located))


def run(*programs: tuple[str, int], seen: tuple[Operation, ...] = ()) -> list[Any]:
    made = [Program(index, name, 9, 0.1, False) for index, (name, _) in enumerate(programs)]
    counts = {index: count for index, (_, count) in enumerate(programs) if count}
    return [STARTED, *made, Step(0, Phase.COUNTED, 0.5, 0, (), counts), *seen, Step(1, Phase.WATCHED, 0.5, 0)]


def seen(name: str, module: str, *programs: int, phase: StepPhase = StepPhase.FORWARD) -> Operation:
    return Operation(name, module, LINE, phase, 1, dict.fromkeys(programs, 1))


def session(folder: Path, runs: dict[Mode, list[Any]], held: dict[str, Contents]) -> Session:
    path = make_session(folder / "s", runs)
    (path / CONTENTS).mkdir()
    for name, item in held.items():
        write_json(path / CONTENTS / f"{name}.json", encode(item))
    return load(path)


def own(table: ModuleTable) -> dict[str, float]:
    return {str(row.module): row.own.value for row in table.rows if row.own.value}


def executions(saved: Session, mode: Mode) -> ModuleTable:
    return next(table for table in analyse_modules(saved).executions if table.mode is mode)


LINEAR = {"linear": contents(("linear", FIRST))}


def test_a_program_that_is_taken_again_counts_where_it_was_seen(tmp_path: Path) -> None:
    trace = (seen("linear", FIRST, 0), seen("linear", SECOND, 0))
    found = executions(session(tmp_path, {Mode.EAGER: run(("linear", 2), seen=trace)}, LINEAR), Mode.EAGER)
    assert own(found) == {"Net.h.0": 1, "Net.h.1": 1}


def test_modules_hold_what_is_below_them(tmp_path: Path) -> None:
    trace = (seen("linear", FIRST, 0), seen("linear", SECOND, 0))
    found = executions(session(tmp_path, {Mode.EAGER: run(("linear", 2), seen=trace)}, LINEAR), Mode.EAGER)
    rows = {row.module: (row.amount.value, row.own.value, row.share) for row in found.rows}
    assert rows[Module("Net")] == rows[Module("Net", "h")] == (2, 0, 1)
    assert rows[Module("Net", "h.1")] == (1, 1, 0.5)


def test_executions_that_were_not_seen_count_where_the_program_was_made(tmp_path: Path) -> None:
    saved = session(tmp_path, {Mode.EAGER: run(("linear", 3), seen=(seen("linear", SECOND, 0),))}, LINEAR)
    assert own(executions(saved, Mode.EAGER)) == {"Net.h.0": 2, "Net.h.1": 1}


def test_gradients_added_up_otherwise_in_the_watched_step_find_their_place(tmp_path: Path) -> None:
    """Outside of it autograd adds in place, with a program of its own; within, with that of the forward addition."""
    trace = (seen("add", FIRST, 0), seen("add", SECOND, 0, phase=StepPhase.BACKWARD))
    held = {"add": contents(("add", FIRST)), "add in place": contents(("add_", None))}
    saved = session(tmp_path, {Mode.EAGER: run(("add", 1), ("add in place", 1), seen=trace)}, held)
    found = {row.module: row.phases for row in executions(saved, Mode.EAGER).rows if row.own.value}
    assert found == {Module("Net", "h.0"): {StepPhase.FORWARD: 1}, Module("Net", "h.1"): {StepPhase.BACKWARD: 1}}


def test_a_fused_program_is_shared_among_its_operations(tmp_path: Path) -> None:
    held = {"both": contents(("linear", FIRST), ("gelu", FIRST), ("linear", SECOND), ("gelu", SECOND))}
    saved = session(tmp_path, {Mode.FUSED: run(("both", 1))}, held)
    assert own(executions(saved, Mode.FUSED)) == {"Net.h.0": 0.5, "Net.h.1": 0.5}


def test_a_program_that_serves_modules_alike_is_shared_among_those_without_one(tmp_path: Path) -> None:
    """Three blocks do the same; the first has a fused program of its own, the others take turns with another."""
    third = "Net|h.2"
    trace = tuple(seen("linear", module, 0) for module in (FIRST, SECOND, third))
    held = {**LINEAR, "alone": contents(("linear", FIRST)), "shared": contents(("linear", SECOND))}
    runs = {Mode.EAGER: run(("linear", 3), seen=trace), Mode.FUSED: run(("alone", 1), ("shared", 2))}
    assert own(executions(session(tmp_path, runs, held), Mode.FUSED)) == {"Net.h.0": 1, "Net.h.1": 1, "Net.h.2": 1}


def test_a_program_that_serves_one_module_again_stays_there(tmp_path: Path) -> None:
    trace = (seen("linear", FIRST, 0), seen("linear", FIRST, 0), seen("linear", SECOND, 0))
    runs = {Mode.EAGER: run(("linear", 3), seen=trace), Mode.FUSED: run(("linear", 2))}
    assert own(executions(session(tmp_path, runs, LINEAR), Mode.FUSED)) == {"Net.h.0": 2}


def test_gradients_without_a_stack_are_shared_as_in_eager_mode(tmp_path: Path) -> None:
    trace = tuple(
        seen("mm_backward", module, 0, phase=StepPhase.BACKWARD) for module in (FIRST, SECOND, SECOND, SECOND)
    )
    held = {"eager": contents(("mm_backward", None)), "fused": contents(("mm_backward", None))}
    runs = {Mode.EAGER: run(("eager", 4), seen=trace), Mode.FUSED: run(("fused", 2))}
    assert own(executions(session(tmp_path, runs, held), Mode.FUSED)) == {"Net.h.0": 0.5, "Net.h.1": 1.5}


def test_gradients_that_eager_mode_knows_no_place_of_belong_to_what_they_are_gradients_of(tmp_path: Path) -> None:
    held = {"loss": contents(("loss", FIRST)), "back": contents(("loss_backward", None))}
    saved = session(tmp_path, {Mode.COMPILED: run(("loss", 1), ("back", 1))}, held)
    (row,) = [row for row in executions(saved, Mode.COMPILED).rows if row.module == Module("Net", "h.0")]
    assert row.phases == {StepPhase.FORWARD: 1, StepPhase.BACKWARD: 1}


def test_what_no_source_is_known_of_stays_without(tmp_path: Path) -> None:
    saved = session(tmp_path, {Mode.FUSED: run(("a", 1), ("b", 1))}, {"a": contents(("other_backward", None))})
    (found,) = attributed_executions(saved)
    assert {(origin.place, origin.module): amount for origin, amount in found.amounts.items()} == {(None, None): 1.0}
    assert sum(found.amounts.values()) == pytest.approx(2)


@pytest.mark.parametrize(
    ("modules", "around"),
    [
        ((FIRST, FIRST), {"Net.h.0": 1}),
        ((FIRST, SECOND), {"Net.h.0": 1 / 3, "Net.h.1": 1 / 3, "Net.h": 1 / 3}),
        ((FIRST, "Other|"), {"Net.h.0": 1 / 3, "Other": 1 / 3, "None": 1 / 3}),
    ],
    ids=["one module", "one around both", "two models"],
)
def test_what_the_compiler_added_belongs_to_the_module_that_holds_its_program(
    tmp_path: Path, modules: tuple[str, str], around: dict[str, float]
) -> None:
    held = {"all": contents(("linear", modules[0]), ("gelu", modules[1]), ("", None))}
    saved = session(tmp_path, {Mode.FUSED: run(("all", 1))}, held)
    assert own(executions(saved, Mode.FUSED)) == pytest.approx(around)
    (found,) = attributed_executions(saved)
    assert {origin.place for origin in found.amounts} == {PLACE}


def test_savings_add_up_and_the_largest_comes_first(tmp_path: Path) -> None:
    trace = (seen("linear", FIRST, 0), seen("linear", SECOND, 0), seen("gelu", FIRST, 1))
    held = {**LINEAR, "gelu": contents(("gelu", FIRST)), "all": contents(("addmm", FIRST), ("gelu", FIRST))}
    runs = {Mode.EAGER: run(("linear", 2), ("gelu", 1), seen=trace), Mode.COMPILED: run(("all", 1))}
    (row,) = analyse_fusion(session(tmp_path, runs, held)).rows
    assert (row.saving.before.value, row.saving.after.value, row.saving.saved) == (3, 1, 2)
    assert [(item.operation, item.saving.saved) for item in row.operations] == [
        ("linear", 2),
        ("gelu", 0.5),
        ("addmm", -0.5),
    ]
    assert [(str(item.module), item.saving.saved) for item in row.modules] == [("Net.h.0", 1), ("Net.h.1", 1)]
    assert [(item.place, item.saving.saved) for item in row.lines] == [(PLACE, 2)]


def test_without_eager_mode_there_is_nothing_to_compare_with(tmp_path: Path) -> None:
    assert analyse_fusion(session(tmp_path, {Mode.FUSED: run(("linear", 2))}, LINEAR)).rows == ()


def test_boundary_bytes_are_those_of_every_execution(tmp_path: Path) -> None:
    saved = session(tmp_path, {Mode.FUSED: run(("linear", 2))}, LINEAR)
    (row,) = analyse_programs(saved).rows
    assert row.boundary is not None
    assert row.boundary.value == 2 * (100 + 50 - 10)


def test_boundary_bytes_are_unknown_where_a_program_is(tmp_path: Path) -> None:
    (row,) = analyse_programs(session(tmp_path, {Mode.FUSED: run(("linear", 2), ("gone", 1))}, LINEAR)).rows
    assert row.boundary is None


def test_programs_of_the_watched_step_are_not_the_scripts_own(tmp_path: Path) -> None:
    own_program, watched = Program(0, "a", 9, 0.1, False), Program(1, "b", 9, 0.1, False)
    records = [STARTED, own_program, Step(0, Phase.WARMUP, 1, 1), watched, Step(1, Phase.WATCHED, 1, 1)]
    (row,) = analyse_programs(load(make_session(tmp_path / "s", {Mode.EAGER: records}))).rows
    assert row.compiled is not None
    assert row.compiled.value == 1
