"""The real TPU compiler on real programs, whose work is known."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.profile.command import SCRIPTS, Profiled, profile, tpuport
from tpuport.profile.chips import pool
from tpuport.profile.chips.pool import compile_programs, load_compiled

SCRIPT = "line_costs.py"
OPTIONS = ("--device", "emulated-tpu", "--steps", "1", "--warmup", "2", "--timeout", "120", "--chip", "v6e")
PRODUCT = 2 * 1024**3
"""FLOP of the smaller product; the larger one has twice as many."""
CHIP = "v6e"


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Profiled:
    return profile(tmp_path_factory.mktemp("costs"), SCRIPT, *OPTIONS)


def line_of(text: str) -> int:
    lines = (SCRIPTS / SCRIPT).read_text(encoding="utf-8").splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if text in line]
    return number


SMALL, LARGE, GELU = line_of("x @ self.small"), line_of("x @ self.large"), line_of("functional.gelu")
LOSS, STEP = line_of("square().mean()"), line_of("optimizer.step()")


def rows(profiled: Profiled, mode: str) -> Any:
    tables = profiled.result.document["lines"]["tables"]
    return next(table["rows"] for table in tables if table["mode"] == mode)


def by_line(profiled: Profiled, mode: str) -> dict[int, Any]:
    return {row["place"]["line"]: row for row in rows(profiled, mode) if row["place"]}


@pytest.mark.parametrize("mode", ["eager", "fused", "compiled"])
def test_exactly_the_lines_that_compute_cost_something(profiled: Profiled, mode: str) -> None:
    assert profiled.result.code == 0, profiled.result.err
    assert set(by_line(profiled, mode)) == {SMALL, LARGE, GELU, LOSS, STEP}
    assert by_line(profiled, mode)[LARGE]["source"] == "x = x @ self.large"


@pytest.mark.parametrize("mode", ["eager", "fused", "compiled"])
def test_the_operations_of_each_line_are_its_own(profiled: Profiled, mode: str) -> None:
    found = {line: set(row["operations"]) for line, row in by_line(profiled, mode).items()}
    assert found[SMALL] == found[LARGE] == {"mm"}
    assert "gelu" in found[GELU]
    assert "mean" in found[LOSS]
    assert all(name.startswith("foreach_") for name in found[STEP])


def test_the_larger_product_costs_about_twice_the_smaller(profiled: Profiled) -> None:
    eager = by_line(profiled, "eager")
    assert 1.3 < eager[LARGE]["cycles"]["value"] / eager[SMALL]["cycles"]["value"] < 2.7


@pytest.mark.parametrize("mode", ["eager", "fused", "compiled"])
def test_lines_add_up_to_the_step(profiled: Profiled, mode: str) -> None:
    total = profiled.row("chips", mode)["cycles"]["value"]
    assert sum(row["cycles"]["value"] for row in rows(profiled, mode)) == pytest.approx(total)


def test_the_parts_of_a_step_are_told_apart(profiled: Profiled) -> None:
    found = {line: set(row["phases"]) for line, row in by_line(profiled, "compiled").items()}
    assert found[SMALL] == found[LARGE] == found[GELU] == found[LOSS] == {"forward", "backward"}
    assert found[STEP] == {"optimizer"}


@pytest.mark.parametrize("mode", ["eager", "fused", "compiled"])
def test_arithmetic_is_that_of_the_model(profiled: Profiled, mode: str) -> None:
    """Forward both products; backward the smaller one's weight, the larger one's weight and input. Then a little."""
    flops = profiled.row("chips", mode)["flops"]["value"]
    products = PRODUCT * (1 + 2 + 1 + 2 + 2)
    assert products <= flops < 1.01 * products


def test_figures_are_named_estimated_and_possible(profiled: Profiled) -> None:
    for row in profiled.result.document["chips"]["rows"]:
        assert {row[name]["basis"] for name in ("time", "roofline", "flops", "boundary", "peak")} == {"estimated"}
        assert row["roofline"]["value"] < row["time"]["value"]
        assert (row["refused"], row["missing"], row["unestimated"].get("convolution")) == ([], 0, None)
        assert 0 < row["peak"]["value"] < row["memory"]["value"]
    executions = {row["mode"]: row["executions"]["value"] for row in profiled.result.document["chips"]["rows"]}
    assert executions["fused"] < executions["compiled"] < executions["eager"]


def test_a_saved_session_is_compiled_for_another_chip(profiled: Profiled, tmp_path: Path) -> None:
    shutil.copytree(profiled.session, tmp_path / "s")
    largest, *others = sorted((tmp_path / "s" / "programs").iterdir(), key=lambda path: -path.stat().st_size)
    for path in others:
        path.unlink()
    again = tpuport("report", "s", "--chip", "v5e", "--json", cwd=tmp_path)
    assert again.code == 0, again.err
    assert "1 of 1 programs" in again.err
    rows = [row for row in json.loads(again.out)["chips"]["rows"] if row["chip"] == "v5e"]
    (found,) = [row for row in rows if row["kernels"]["value"]]
    assert found["missing"] == found["executions"]["value"] - 1
    assert largest.exists()


def test_the_source_is_shown_with_what_its_lines_cost(profiled: Profiled) -> None:
    shown = tpuport("report", profiled.session, cwd=profiled.session.parent)
    _, _, listing = shown.out.partition("The source and its cost")
    (line,) = [line for line in listing.splitlines() if "x = x @ self.large" in line]
    assert re.match(rf" *\d+\.\d% █+ +{LARGE}  ", line)
    assert "A step on a chip (estimated)" in shown.out


def test_results_are_kept_for_every_session(
    profiled: Profiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TPUPORT_CACHE_DIR", str(profiled.session.parent / "cache"))
    monkeypatch.setattr(pool, "_compile", lambda *_arguments: pytest.fail("a program was compiled again"))
    programs = [path.name for path in (profiled.session / "programs").iterdir()]
    compile_programs(tmp_path, programs, [CHIP], lambda _done, _total: None)
    assert [result.program for result in load_compiled(tmp_path, [CHIP])] == sorted(programs)


def test_what_the_compiler_refuses_is_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPUPORT_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "broken").write_bytes(b"this is no program")
    seen: list[tuple[int, int]] = []
    compile_programs(tmp_path, ["broken"], [CHIP], lambda done, total: seen.append((done, total)))
    assert seen == [(0, 1), (1, 1)]
    (path,) = (tmp_path / "chips" / CHIP).iterdir()
    assert json.loads(path.read_text())["error"]


def test_a_program_that_ends_the_compiler_costs_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPUPORT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(pool, "_BOOTSTRAP", "import sys; sys.stdin.readline(); sys.exit('no such library'); {root!r}")
    (tmp_path / "programs").mkdir()
    names = [str(number) for number in range(2 * (os.cpu_count() or 1) + 1)]
    for name in names:
        (tmp_path / "programs" / name).touch()
    compile_programs(tmp_path, names, [CHIP], lambda _done, _total: None)
    assert [result.error for result in load_compiled(tmp_path, [CHIP])] == [
        "the compiler crashed: no such library"
    ] * len(names)
    assert not (tmp_path / "cache").exists()
