"""The largest batch that fits: the search on made-up memory, and real runs of a script whose need is known."""

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.profile.command import SCRIPTS, make_plan, tpuport
from tpuport.errors import UsageError
from tpuport.output import profile_html, profile_markdown
from tpuport.output.profile_batches import batch_lines
from tpuport.profile import largest_batch
from tpuport.profile.analyses import analyse
from tpuport.profile.analyses.batches import Batches, BatchPoint, BatchRow, analyse_batches
from tpuport.profile.batch_argument import batch_size, with_batch_size
from tpuport.profile.batch_search import MAX_RUNS, Measured, bounds, line, next_size
from tpuport.profile.chips import specs
from tpuport.profile.chips.compiler import Compiler
from tpuport.profile.chips.specs import CHIPS, GIB
from tpuport.profile.engine import prepare_folder, run_session
from tpuport.profile.figures import Basis, Figure
from tpuport.profile.largest_batch import find_largest_batch
from tpuport.profile.plan import Mode
from tpuport.profile.session import Session, save

LIMIT = 1_000
VALUES = 4096
"""Float32 values that fixtures/scripts/batches.py keeps of each sample, and as many again in its largest program."""


def search(need: Callable[[int], int | None], first: int, ceiling: int | None = None) -> list[Measured]:
    points: list[Measured] = []
    while len(points) < MAX_RUNS and (size := next_size(points, LIMIT, first, ceiling)) is not None:
        assert all(point.size != size for point in points)
        needed = need(size)
        points.append(Measured(size, needed, needed is not None and needed <= LIMIT))
    return points


@pytest.mark.parametrize("first", [1, 3, 32, 100, 500])
def test_of_memory_along_a_line_the_largest_is_found_exactly(first: int) -> None:
    assert bounds(search(lambda size: 160 + 20 * size, first)) == (42, 43)


@pytest.mark.parametrize("first", [8, 100, 2_000])
def test_large_sizes_are_found_by_whole_tiles_and_the_power_of_two_is_tried(first: int) -> None:
    points = search(lambda size: 100 + size // 3, first)
    assert bounds(points) == (2_696, 2_704)
    assert 2_048 in {point.size for point in points}


def test_a_power_of_two_that_needs_more_than_a_larger_size_is_no_bound() -> None:
    points = search(lambda size: 2_000 if size == 512 else 100 + size, 8)
    assert bounds(points) == (896, 904)
    assert Measured(512, 2_000, fits=False) in points


def test_memory_that_grows_faster_later_is_closed_in_on() -> None:
    fits, over = bounds(search(lambda size: 4 * size if size < 50 else 200 + 9 * (size - 50), 8))
    assert (fits, over) == (136, 144)


def test_where_not_even_one_fits_there_is_an_end() -> None:
    assert bounds(search(lambda size: 2_000 + size, 8)) == (None, 1)


def test_memory_that_does_not_grow_ends_the_search() -> None:
    assert [point.size for point in search(lambda _size: 10, 8)] == [8, 16]


def test_what_can_not_be_run_here_is_left_to_the_line_once_a_size_has_shown_that_it_holds() -> None:
    points = search(lambda size: 100 + size, 8, ceiling=200)
    assert [point.size for point in points] == [8, 16, 64]
    rising = line(points)
    assert rising is not None
    assert rising.reach(LIMIT) == 900


def test_as_long_as_the_line_does_not_hold_larger_sizes_are_run_up_to_what_can_be() -> None:
    points = search(lambda size: size if size < 60 else 3 * size - 120, 8, ceiling=200)
    assert [point.size for point in points] == [8, 16, 64, 200]


@pytest.mark.parametrize(
    ("arguments", "name", "changed"),
    [
        (("--batch-size", "32", "--x"), "--batch-size", ("--batch-size", "64", "--x")),
        (("-b=32", "data"), "-b", ("-b=64", "data")),
        (("train.batch=32",), "train.batch", ("train.batch=64",)),
    ],
)
def test_the_argument_is_found_and_changed(arguments: tuple[str, ...], name: str, changed: tuple[str, ...]) -> None:
    assert batch_size(arguments, name) == 32
    assert with_batch_size(arguments, name, 64) == changed


@pytest.mark.parametrize("arguments", [(), ("--batch", "8", "--batch=9"), ("--batch", "many"), ("--batch=0",), ("8",)])
def test_an_argument_that_sets_no_batch_size_is_refused(arguments: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="--largest-batch --batch"):
        batch_size(arguments, "--batch")


def test_without_a_chip_the_question_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    asked = ("--device", "emulated-tpu", "--largest-batch=--n")
    done = tpuport("profile", "train.py", *asked, "--", "--n", "8", cwd=tmp_path)
    assert (done.code, "--chip v6e" in done.err) == (2, True)


def point(size: int, needed: float, fits: bool = True, problem: str = "") -> BatchPoint:
    figure = None if problem else Figure(needed, "B", Basis.ESTIMATED)
    return BatchPoint(size, figure, figure and Figure(5, "B", Basis.MEASURED), fits, problem)


def verdict(*points: BatchPoint, **values: object) -> str:
    fields = {"largest": None, "too_large": None, "estimate": None, "per_sample": None, "error": None}
    limit = Figure(GIB, "B", Basis.MEASURED)
    row = BatchRow("v6e", Mode.COMPILED, limit, points, **(fields | values))  # type: ignore[arg-type]
    return batch_lines(Batches("--n", (row,)))[0]


def test_a_closed_search_says_what_fits_and_what_does_not() -> None:
    said = verdict(point(96, GIB), point(97, 2 * GIB, fits=False), largest=96, too_large=97)
    assert said == "v6e, compiled: 96 fits (1 GiB of 1 GiB), 97 does not."
    assert "What lies between was not tried" in verdict(point(96, 1), point(106, 2), largest=96, too_large=106)


def test_a_power_of_two_below_that_does_not_fit_is_said() -> None:
    said = verdict(point(64, 2 * GIB, fits=False), point(96, 1), point(97, 2), largest=96, too_large=97)
    assert "64, does not fit" in said


def test_an_estimate_says_that_it_is_one_and_how_good() -> None:
    slope = Figure(1e6, "B", Basis.ESTIMATED)
    said = verdict(point(8, 1), point(16, 2), largest=16, estimate=900, per_sample=slope, error=0.01)
    assert "By estimate 900 is the largest: 1 MB a sample; the largest size run was 1.0% off the line" in said
    assert "It was not run" in said


def test_memory_that_does_not_grow_is_said() -> None:
    assert "Memory does not grow from 8 to 16" in verdict(point(8, 1), point(16, 1), largest=16)


def test_a_size_at_which_the_script_fails_is_said() -> None:
    said = verdict(point(8, 1), point(16, 0, problem="ValueError: no"), largest=8)
    assert said.endswith("Size 16 could not be looked at: ValueError: no.")


@pytest.mark.parametrize("chip", CHIPS)
def test_the_compiler_refuses_what_needs_more_than_the_memory_that_it_leaves(chip: str, compiler: Compiler) -> None:
    shape = f"tensor<{2**25}x1024xf32>"
    code = f"module @m {{ func.func @main(%a: {shape}) -> {shape} {{ return %a : {shape} }} }}"
    refused = compiler.compile(code.encode(), chip).error
    (available,) = re.findall(r"exceeds available HBM \(([\d.]+)G\)", refused)
    assert CHIPS[chip].usable == int(float(available) * GIB)


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return Compiler()


def searched(folder: Path, monkeypatch: pytest.MonkeyPatch, usable: int, first: int, *arguments: str) -> Session:
    """Search for the largest batch on a v6e of less memory, in place of a session that has measured before."""
    monkeypatch.setenv("TPUPORT_CACHE_DIR", str(folder / "cache"))
    monkeypatch.setitem(specs.CHIPS, "v6e", dataclasses.replace(CHIPS["v6e"], usable=usable))
    plan = make_plan(
        script=str(SCRIPTS / "batches.py"),
        arguments=("--batch-size", str(first), *arguments),
        directory=str(folder),
        modes=(),
        timeout_s=120.0,
        batch_argument="--batch-size",
    )
    prepare_folder(folder / "session")
    empty = run_session(plan, folder / "session", lambda _name, _seconds: None)
    plan = dataclasses.replace(plan, modes=(Mode.COMPILED,))
    header = dataclasses.replace(empty.header, plan=plan)
    save(folder / "session", header)
    return find_largest_batch(dataclasses.replace(empty, header=header), ("v6e",), lambda _name, _seconds: None)


def test_real_runs_close_in_on_the_size_that_fills_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(largest_batch, "MAX_RUNS", 3)
    limit = 256 * 2**20
    session = searched(tmp_path, monkeypatch, limit, 2048)
    (row,) = analyse_batches(session).rows
    assert [found.size for found in row.points][:2] == [2048, 4096]
    assert len(row.points) == 3
    assert row.largest is not None
    assert row.largest > 4096
    for found in row.points:
        assert found.needed is not None
        kept = 4 * VALUES * found.size
        # The compiler keeps one or two of them, and parts of them for a time.
        assert kept < found.needed.value < 2.2 * kept
        assert found.fits == (found.needed.value <= limit)
    report = analyse(session)
    assert f"{row.largest} fits" in batch_lines(report.batches)[0]
    for render in (profile_markdown.render, profile_html.render):
        page = render(session, report)
        assert "The largest batch (--batch-size)" in page
        assert f"v6e, compiled: {row.largest} fits" in page
