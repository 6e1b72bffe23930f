"""Sums over a step, on sessions whose programs have costs that are known."""

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.profile.command import make_plan, make_session
from tpuport.output import profile_text
from tpuport.output.profile_headline import headline
from tpuport.profile.analyses import analyse
from tpuport.profile.analyses.chips import Bound, ChipRow, analyse_chips
from tpuport.profile.analyses.lines import LineRow, analyse_lines
from tpuport.profile.chips.estimates import Compiled, Cost, Kernels, Memory, SourceFrame
from tpuport.profile.chips.hlo import SCALAR
from tpuport.profile.chips.specs import CHIPS
from tpuport.profile.codec import encode
from tpuport.profile.layout import write_json
from tpuport.profile.phases import StepPhase
from tpuport.profile.places import Place
from tpuport.profile.plan import Mode
from tpuport.profile.records import Enough, Phase, Program, Started, Step
from tpuport.profile.session import Session, load

CHIP = CHIPS["v6e"]
STARTED = Started("2.13.0", "tpu", ("/lib/", "/tpuport/"))
TORCH = "/lib/site-packages/torch"
FRAMES = (
    SourceFrame("/tpuport/child.py", 1, "main", 0),
    SourceFrame("/project/train.py", 9, "module", 1),
    SourceFrame("/project/model.py", 4, "forward", 2),
    SourceFrame(f"{TORCH}/nn/modules/linear.py", 99, "forward", 3),
    SourceFrame("/project/train.py", 12, "module", 1),
    SourceFrame(f"{TORCH}/optim/adam.py", 99, "step", 5),
    SourceFrame(f"{TORCH}/autograd/function.py", 99, "backward", 1),
    SourceFrame("/project/model.py", 4, "forward", 7),
    SourceFrame("/lib/site-packages/timm/layers.py", 7, "forward", 2),
    SourceFrame(f"{TORCH}/nn/utils/clip_grad.py", 7, "clip_grad_norm_", 5),
    SourceFrame(f"{TORCH}/autograd/function.py", 99, "apply_boxed", 1),
    SourceFrame("/project/model.py", 4, "forward", 11),
    SourceFrame(f"{TORCH}/autograd/function.py", 50, "apply", 2),
    SourceFrame("/project/model.py", 20, "forward", 13),
    SourceFrame(f"{TORCH}/autograd/function.py", 60, "apply", 0),
    SourceFrame("/project/model.py", 25, "backward", 15),
    SourceFrame(f"{TORCH}_tpu/_internal/export/export.py", 207, "run_node", 2),
    SourceFrame(f"{TORCH}_tpu/_internal/export/export.py", 8, "dispatch_fx_node", 17),
)
LINEAR, OPTIMIZER, TIMM, CLIP, BACKWARD = 4, 6, 9, 10, 12
OWN_FORWARD, OWN_BACKWARD, NODE_WITHOUT_POSITION = 14, 16, 18


def compiled(name: str, *costs: Cost, flops: float = 0.0, peak: int = 100, **more: Any) -> Compiled:
    memory = Memory(arguments=70, outputs=50, aliases=20, temporaries=0, code=0, peak=peak)
    kernels = Kernels(len(costs), 0, more.pop("unestimated", ()), 0, FRAMES, costs)
    return Compiled(name, "v6e", "1.2", 0.1, "", flops, memory, kernels)


def session(folder: Path, runs: dict[str, int], *results: Compiled, mode: Mode = Mode.EAGER) -> Session:
    programs = [Program(index, name, 9, 0.1, False) for index, name in enumerate(runs)]
    step = Step(0, Phase.COUNTED, 0.5, 0, (), dict(enumerate(runs.values())))
    records = [STARTED, *programs, step, Enough()]
    path = make_session(folder / "s", {mode: records}, plan=make_plan(modes=(mode,)))
    for result in results:
        (path / "chips" / result.chip).mkdir(parents=True, exist_ok=True)
        write_json(path / "chips" / result.chip / f"{result.program}.json", encode(result))
    return load(path)


def row(saved: Session) -> ChipRow:
    (found,) = analyse_chips(saved).rows
    return found


def lines(saved: Session) -> tuple[LineRow, ...]:
    (table,) = analyse_lines(saved).tables
    return table.rows


def test_a_program_counts_as_often_as_it_runs(tmp_path: Path) -> None:
    first = compiled("a", Cost(LINEAR, "mm", 700.0), flops=10.0, peak=300)
    second = compiled("b", Cost(LINEAR, "add", 50.0), flops=1.0, peak=200)
    found = row(session(tmp_path, {"a": 1, "b": 3}, first, second))
    assert (found.executions.value, found.distinct.value, found.kernels.value) == (4, 2, 4)
    assert (found.cycles.value, found.flops.value, found.boundary.value) == (850, 13, 4 * (70 + 50 - 20))
    assert (found.peak.value, found.fits) == (300, True)
    assert found.time.value == pytest.approx(850 / CHIP.clock)
    assert found.launch.value == pytest.approx(850 / CHIP.clock / 4)


def test_the_clock_is_that_of_the_published_peak() -> None:
    clocks = {name: round(chip.clock / 1e9, 2) for name, chip in CHIPS.items()}
    assert clocks == {"v4": 1.05, "v5e": 1.5, "v5p": 1.75, "v6e": 1.75, "tpu7x": 2.2}


def test_what_exceeds_the_memory_does_not_fit(tmp_path: Path) -> None:
    found = row(session(tmp_path, {"a": 1}, compiled("a", peak=CHIP.memory + 1)))
    assert not found.fits


@pytest.mark.parametrize(
    ("flops", "cycles", "bound"),
    [
        (CHIP.flops, 1.5 * CHIP.clock, Bound.COMPUTE),
        (0.0, 1.5 * CHIP.clock * 100 / CHIP.bandwidth, Bound.MEMORY),
        (CHIP.flops, 3 * CHIP.clock, Bound.OVERHEAD),
    ],
)
def test_what_bounds_a_step_is_named(tmp_path: Path, flops: float, cycles: float, bound: Bound) -> None:
    found = row(session(tmp_path, {"a": 1}, compiled("a", Cost(LINEAR, "mm", cycles), flops=flops)))
    assert found.bound is bound


def test_a_refused_program_is_counted_and_named(tmp_path: Path) -> None:
    refused = Compiled("b", "v6e", "1.2", 0.1, error="no such operation")
    found = row(session(tmp_path, {"a": 1, "b": 2, "c": 4}, compiled("a", Cost(LINEAR, "mm", 5.0)), refused))
    assert [(item.program, item.executions, item.reason) for item in found.refused] == [("b", 2, "no such operation")]
    assert (found.missing, found.executions.value, found.cycles.value) == (4, 7, 5)


def test_kernels_without_an_estimate_are_named_but_for_single_numbers(tmp_path: Path) -> None:
    program = compiled("a", unestimated=("tpu_custom_call", SCALAR, "tpu_custom_call"))
    assert row(session(tmp_path, {"a": 3}, program)).unestimated == {"tpu_custom_call": 6}


def test_the_headline_says_how_many_kernels_have_no_estimate(tmp_path: Path) -> None:
    costs = [Cost(LINEAR, "mm", 5.0)] * 4
    for folder, unknown, said in (("some", ("copy",), True), ("none", (), False)):
        (tmp_path / folder).mkdir()
        saved = session(tmp_path / folder, {"a": 3}, compiled("a", *costs, unestimated=unknown))
        details = [fact.detail for fact in headline(analyse(saved), saved.plan.device) if "v6e" in fact.title]
        assert [("25.0% of its kernels have no estimate" in detail) for detail in details] == [said]


def test_without_results_there_is_no_section(tmp_path: Path) -> None:
    saved = session(tmp_path, {"a": 1})
    assert analyse_chips(saved).rows == ()
    assert analyse_lines(saved).tables == ()


def test_a_damaged_result_counts_as_none(tmp_path: Path) -> None:
    saved = session(tmp_path, {"a": 1, "b": 1}, compiled("a"), compiled("b"))
    (saved.folder / "chips/v6e/b.json").write_text("{")
    assert row(load(saved.folder)).missing == 1


def test_lines_are_the_users_and_add_up(tmp_path: Path) -> None:
    costs = (Cost(LINEAR, "mm", 600.0), Cost(OPTIMIZER, "foreach_add_", 100.0), Cost(BACKWARD, "mm", 200.0))
    found = lines(session(tmp_path, {"a": 2}, compiled("a", *costs, Cost(TIMM, "mul", 100.0))))
    assert [(item.place, item.cycles.value) for item in found] == [
        (Place("model.py", 4, "forward"), 1600),
        (Place("train.py", 12, "module"), 200),
        (Place("/lib/site-packages/timm/layers.py", 7, "forward"), 200),
    ]
    assert found[0].phases == {StepPhase.FORWARD: 1200, StepPhase.BACKWARD: 400}
    assert found[1].phases == {StepPhase.OPTIMIZER: 200}
    assert sum(item.share for item in found) == pytest.approx(1)


def test_clipping_gradients_is_part_of_the_update(tmp_path: Path) -> None:
    (found,) = lines(session(tmp_path, {"a": 1}, compiled("a", Cost(CLIP, "foreach_norm", 50.0))))
    assert (found.place, found.phases) == (Place("train.py", 12, "module"), {StepPhase.OPTIMIZER: 50})


def test_a_users_own_function_has_a_forward_and_a_backward(tmp_path: Path) -> None:
    costs = (Cost(OWN_FORWARD, "mul", 2.0), Cost(OWN_BACKWARD, "mul", 1.0))
    found = lines(session(tmp_path, {"a": 1}, compiled("a", *costs)))
    assert [(item.place and item.place.line, item.phases) for item in found] == [
        (20, {StepPhase.FORWARD: 2}),
        (25, {StepPhase.BACKWARD: 1}),
    ]


def test_the_call_that_had_a_graph_compiled_is_no_line_of_its_nodes(tmp_path: Path) -> None:
    (found,) = lines(session(tmp_path, {"a": 1}, compiled("a", Cost(NODE_WITHOUT_POSITION, "iota", 1.0))))
    assert (found.place, found.operations) == (None, ("iota",))


def test_what_the_compiler_added_belongs_to_most_of_its_program(tmp_path: Path) -> None:
    costs = (Cost(BACKWARD, "mm", 600.0), Cost(OPTIMIZER, "foreach_add_", 100.0), Cost(0, "", 50.0))
    added = next(item for item in lines(session(tmp_path, {"a": 1}, compiled("a", *costs))) if item.place is None)
    assert (added.operations, added.phases) == ((), {StepPhase.BACKWARD: 50})


def test_what_the_compiler_added_belongs_to_the_line_that_holds_all_of_its_program(tmp_path: Path) -> None:
    costs = (Cost(BACKWARD, "mm", 600.0), Cost(LINEAR, "mm", 100.0), Cost(0, "", 50.0))
    (found,) = lines(session(tmp_path, {"a": 1}, compiled("a", *costs)))
    assert found.phases == {StepPhase.BACKWARD: 650, StepPhase.FORWARD: 100}


def test_an_operation_without_a_stack_ran_on_autograds_thread(tmp_path: Path) -> None:
    (found,) = lines(session(tmp_path, {"a": 1}, compiled("a", Cost(0, "gelu_backward", 50.0))))
    assert (found.place, found.operations, found.phases) == (None, ("gelu_backward",), {StepPhase.BACKWARD: 50})


@pytest.mark.parametrize("width", [80, 120])
def test_the_tables_fit_a_terminal(tmp_path: Path, width: int) -> None:
    saved = session(tmp_path, {"a": 3}, compiled("a", Cost(LINEAR, "mm", 9e5), peak=999 * 2**20), mode=Mode.COMPILED)
    stream = io.StringIO()
    profile_text.render(saved, analyse(saved), Console(file=stream, width=width, _environ={}))
    tables = stream.getvalue().partition("A step on a chip")[2].partition("The source")[0]
    assert "999 MiB/32 GiB" in tables
    assert "…" not in tables
