"""Cost by module and what fusion gains, on a real script whose modules do a known amount of work."""

import re
from typing import Any

import pytest

from tests.profile.command import Profiled, profile, tpuport

OPTIONS = ("--device", "emulated-tpu", "--steps", "1", "--warmup", "2", "--timeout", "120", "--chip", "v5e")
MODES = ("eager", "fused", "compiled")
LARGE, SMALL = "Model.large", "Model.small"


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Profiled:
    return profile(tmp_path_factory.mktemp("modules"), "module_costs.py", *OPTIONS)


def modules(profiled: Profiled, kind: str, mode: str) -> dict[str, Any]:
    assert profiled.result.code == 0, profiled.result.err
    tables = profiled.result.document["modules"][kind]
    rows = next(table["rows"] for table in tables if table["mode"] == mode)
    return {".".join(filter(None, (row["module"] or {"root": "–"}).values())): row for row in rows}


def fusion(profiled: Profiled, mode: str) -> Any:
    return next(row for row in profiled.result.document["fusion"]["rows"] if row["mode"] == mode)


def test_executions_in_eager_mode_are_those_of_each_modules_operations(profiled: Profiled) -> None:
    """A product has one gradient; `small` is the second to give one to `x`, which is an addition.

    `blocks.2` runs its product and its tanh once more in the backward pass.
    """
    found = {name: row["own"]["value"] for name, row in modules(profiled, "executions", "eager").items()}
    block = {"": 2, ".proj": 2}
    blocks = {f"Model.blocks.{number}{name}": count for number in (0, 1) for name, count in block.items()}
    again = {"Model.blocks.2": 3, "Model.blocks.2.proj": 3}
    # The weight of `twice` gets two gradients, which are added.
    twice = {"Model.twice": 4, "Model.twice.proj": 5}
    known = {"Model": 3, "Model.blocks": 0, SMALL: 3, LARGE: 2, **blocks, **again, **twice}
    assert {name: count for name, count in found.items() if name != "–"} == known


@pytest.mark.parametrize("mode", MODES)
def test_modules_add_up_to_the_step(profiled: Profiled, mode: str) -> None:
    executions = sum(row["own"]["value"] for row in modules(profiled, "executions", mode).values())
    assert executions == pytest.approx(profiled.row("programs", mode)["executions"]["value"])
    cycles = sum(row["own"]["value"] for row in modules(profiled, "cycles", mode).values())
    assert cycles == pytest.approx(profiled.row("chips", mode)["cycles"]["value"])


@pytest.mark.parametrize("mode", MODES)
def test_ten_times_the_arithmetic_costs_between_its_traffic_and_its_arithmetic(profiled: Profiled, mode: str) -> None:
    """Forward `large` moves 4 times the bytes of `small`, and does 10 times the arithmetic."""
    found = modules(profiled, "cycles", mode)
    assert 4 < found[LARGE]["phases"]["forward"] / found[SMALL]["phases"]["forward"] < 10


@pytest.mark.parametrize("mode", MODES[:2])
def test_modules_that_do_the_same_cost_the_same(profiled: Profiled, mode: str) -> None:
    found = modules(profiled, "cycles", mode)
    assert found["Model.blocks.0"]["amount"]["value"] == pytest.approx(found["Model.blocks.1"]["amount"]["value"])


@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_a_module_that_is_called_twice_costs_twice(profiled: Profiled, mode: str) -> None:
    found = modules(profiled, "cycles", mode)
    once, twice = (found[name]["phases"]["forward"] for name in ("Model.blocks.0", "Model.twice"))
    assert twice == pytest.approx(2 * once, rel=0.25)


@pytest.mark.parametrize("mode", MODES)
def test_models_run_forward_and_backward_and_the_optimizer_outside_of_them(profiled: Profiled, mode: str) -> None:
    found = {name: set(row["phases"]) for name, row in modules(profiled, "cycles", mode).items()}
    assert found.pop("–") == {"forward", "backward", "optimizer"}
    assert all(phases == {"forward", "backward"} for phases in found.values())


def test_what_runs_again_in_the_backward_pass_is_part_of_it(profiled: Profiled) -> None:
    found = modules(profiled, "executions", "eager")
    assert found["Model.blocks.1"]["phases"] == {"forward": 2, "backward": 2}
    assert found["Model.blocks.2"]["phases"] == {"forward": 2, "backward": 4}


@pytest.mark.parametrize("mode", MODES[1:])
def test_what_a_mode_saves_is_told_by_operation_module_and_line(profiled: Profiled, mode: str) -> None:
    row = fusion(profiled, mode)
    before, after = (profiled.row("programs", name)["executions"]["value"] for name in ("eager", mode))
    assert row["saving"]["saved"] == pytest.approx(before - after)
    for kind in ("operations", "modules", "lines"):
        savings = [item["saving"]["saved"] for item in row[kind]]
        assert savings == sorted(savings, reverse=True)
        assert sum(savings) == pytest.approx(before - after)


@pytest.mark.parametrize("mode", MODES)
def test_boundary_bytes_are_about_those_of_the_chip(profiled: Profiled, mode: str) -> None:
    """The chip pads tensors; these are large."""
    counted, compiled = profiled.row("programs", mode)["boundary"], profiled.row("chips", mode)["boundary"]
    assert counted["basis"] == "measured"
    assert counted["value"] == pytest.approx(compiled["value"], rel=0.01)


def test_the_report_shows_the_largest_modules_and_savings(profiled: Profiled) -> None:
    shown = tpuport("report", profiled.session, cwd=profiled.session.parent).out
    before, after = (profiled.row("programs", mode)["executions"]["value"] for mode in ("eager", "fused"))
    assert f"What fused mode saves: {before:g} → {after:g} executions a step" in shown
    assert "Cost by module on v5e (estimated share of a step's cycles)" in shown
    assert re.search(r"… and \d more", shown)
