"""Comparing numbers: digests and verdicts on made-up runs, and scripts of which a known part differs."""

import math
from pathlib import Path
from typing import Any

import pytest

from tests.profile.command import Profiled, make_plan, make_session, rewrite_header, tpuport
from tpuport.profile.analyses.numbers import Numbers, Verdict, analyse_numbers
from tpuport.profile.codec import encode
from tpuport.profile.digests import Digest, compare
from tpuport.profile.layout import REFERENCE
from tpuport.profile.plan import Mode
from tpuport.profile.records import FILE_NAME, Precision, RecordWriter, TensorSeen
from tpuport.profile.runner import ExitKind, ProcessExit
from tpuport.profile.session import load

CPU = ("--device", "cpu", "--mode", "eager", "--steps", "1", "--warmup", "1", "--timeout", "60")
EMULATED = ("--device", "emulated-tpu", "--steps", "1", "--warmup", "1", "--timeout", "120")
CHECKED = (*CPU, "--check-numbers", "2", "--fail-on", "number-drift")
DONE = ProcessExit(ExitKind.EXITED, 0, 1.0)


def digest(*values: float, dtype: str = "float32", shape: tuple[int, ...] | None = None) -> Digest:
    finite = [value for value in values if math.isfinite(value)]
    magnitude = math.sqrt(sum(value**2 for value in finite) / len(finite)) if finite else 0.0
    return Digest(shape or (len(values),), dtype, magnitude, len(values) - len(finite), values)


@pytest.mark.parametrize(
    ("actual", "where"),
    [
        (digest(1.0, 2.0), None),
        (digest(1.0005, 2.0), None),
        (digest(1.0, 2.1), "[1]"),
        (digest(1.0, math.nan), "[1]"),
        (digest(1.0, 2.0, dtype="bfloat16"), None),
        (digest(1.0, 2.0, 3.0), "float32[2] became float32[3]"),
        (digest(1.0, 2.0, dtype="int64"), "float32[2] became int64[2]"),
    ],
)
def test_a_digest_says_where_another_leaves_it(actual: Digest, where: str | None) -> None:
    found = compare(digest(1.0, 2.0), actual, 1e-3)
    assert (found and found.where) == where


def test_integers_have_no_tolerance() -> None:
    found = compare(digest(1000.0, dtype="int64"), digest(1001.0, dtype="int64"), 0.5)
    assert found is not None
    assert (found.expected, found.actual, found.absolute) == (1000.0, 1001.0, 1.0)


def test_rounding_of_what_should_be_zero_is_no_difference() -> None:
    assert compare(digest(1e-9), digest(-1e-9), 1e-3, floor=1e-3) is None
    assert compare(digest(1e-9), digest(-1e-9), 1e-3) is not None


def test_an_index_of_a_complex_tensor_names_the_part() -> None:
    shape = (2, 1)
    found = compare(
        digest(1, 2, 3, 4, dtype="complex64", shape=shape), digest(1, 2, 3, -4, dtype="complex64", shape=shape), 1e-3
    )
    assert found is not None
    assert found.where == "[1, 0] (imaginary part)"


def seen(what: str, module: str, *values: float, step: int = 0, drawn: bool = False, name: str = "") -> TensorSeen:
    return TensorSeen(step, what, module, name, 0, drawn, digest(*values))


def analysed(folder: Path, reference: list[Any], runs: dict[Mode, list[Any]]) -> Numbers:
    session = make_session(folder / "s", runs, plan=make_plan(modes=tuple(runs), checked_steps=2))
    (session / REFERENCE).mkdir()
    writer = RecordWriter(session / REFERENCE / FILE_NAME)
    for record in reference:
        writer.write(record)
    rewrite_header(session, reference=encode({"mode": Mode.EAGER, "exit": encode(DONE)}))
    return analyse_numbers(load(session))


FORWARD = [seen("input", "M", 1.0), seen("input", "M.a", 1.0), seen("output", "M.a", 2.0), seen("output", "M", 3.0)]


def changed(position: int, *values: float) -> list[TensorSeen]:
    item = FORWARD[position]
    return [*FORWARD[:position], seen(item.what, item.module, *values), *FORWARD[position + 1 :]]


@pytest.mark.parametrize(
    ("position", "meaning"),
    [
        (0, "the script feeds M other numbers"),
        (1, "it is made by the code of M around its parts, which agree until then"),
        (2, "its inputs agree: M.a computes something else"),
        (3, "its inputs agree: M computes something else"),
    ],
)
def test_the_first_difference_in_forward_order_is_told(tmp_path: Path, position: int, meaning: str) -> None:
    (row,) = analysed(tmp_path, FORWARD, {Mode.EAGER: changed(position, 5.0)}).rows
    assert row.verdict is Verdict.DIFFERS
    assert row.forward is not None
    assert (row.forward.module, row.forward.meaning) == (FORWARD[position].module, meaning)


def test_what_follows_random_numbers_is_not_called_different(tmp_path: Path) -> None:
    reference = [*FORWARD[:2], seen("output", "M.a", 2.0, drawn=True), FORWARD[3]]
    runs = {Mode.EAGER: changed(2, 5.0), Mode.FUSED: changed(2, 5.5)}
    rows = analysed(tmp_path, reference, runs).rows
    assert [(row.mode, row.reference, row.verdict) for row in rows] == [
        ("eager", REFERENCE, Verdict.INCOMPARABLE),
        ("fused", REFERENCE, Verdict.INCOMPARABLE),
        ("fused", "eager", Verdict.DIFFERS),
    ]


def test_steps_of_an_optimizer_on_rounding_are_not_called_different(tmp_path: Path) -> None:
    reference = [*FORWARD, seen("weight", "M.a", 1.0, step=1), seen("output", "M.a", 2.0, step=1)]
    run = [*FORWARD, seen("weight", "M.a", 1.1, step=1), seen("output", "M.a", 2.2, step=1)]
    (row, *_) = analysed(tmp_path, reference, {Mode.EAGER: run}).rows
    assert row.verdict is Verdict.INCOMPARABLE
    assert row.forward is not None
    assert "by then weights differ" in row.forward.meaning


def test_the_tolerance_is_that_of_the_least_precise_type(tmp_path: Path) -> None:
    run = [Precision(("bfloat16", "float32")), *changed(2, 2.04)]
    (row,) = analysed(tmp_path, FORWARD, {Mode.EAGER: run}).rows
    assert (row.verdict, row.precision, row.tolerance) == (Verdict.AGREES, "bfloat16", 0.1)


def difference(run: Profiled, which: str, mode: str = "eager") -> tuple[int, str, str, str]:
    found = run.row("numbers", mode)[which]
    return found["step"], found["what"], found["module"], found["name"]


@pytest.mark.profiled("drift.py", *CHECKED, arguments=("half",))
def test_a_row_that_half_precision_changes_is_found(run: Profiled) -> None:
    assert run.result.code == 1
    shown = tpuport("report", run.session, "--format", "markdown", cwd=run.session.parent).out
    assert "- eager **DIFFERS from** cpu-float32 (" in shown
    assert "step 0, output of Model.part: [0, 0] is" in shown
    assert difference(run, "forward") == (0, "output", "Model.part", "")
    deviation = run.row("numbers", "eager")["forward"]["deviation"]
    assert deviation["where"] == "[0, 0]"
    assert deviation["actual"] == pytest.approx(2 * deviation["expected"], rel=0.01)
    assert deviation["relative"] == pytest.approx(0.5, abs=0.01)


@pytest.mark.profiled("drift.py", *CPU, "--check-numbers", "1", arguments=("around",))
def test_a_change_between_two_parts_is_no_parts_fault(run: Profiled) -> None:
    assert difference(run, "forward") == (0, "input", "Model.last", "0")
    assert "the code of Model around its parts" in run.row("numbers", "eager")["forward"]["meaning"]


@pytest.mark.parametrize(
    "precision",
    [
        pytest.param("bfloat16", marks=pytest.mark.profiled("drift.py", *CHECKED, arguments=(kind,)), id=kind)
        for kind in ("rounded", "autocast")
    ],
)
def test_rounding_in_half_precision_is_no_difference(run: Profiled, precision: str) -> None:
    assert run.result.code == 0
    assert run.row("numbers", "eager")["precision"] == precision


@pytest.mark.profiled(
    "drift.py", *EMULATED, "--mode", "eager", "--mode", "compiled", "--check-numbers", "2", arguments=("imaginary",)
)
def test_a_part_that_is_wrong_on_a_tpu_is_named_with_its_step(run: Profiled) -> None:
    assert difference(run, "forward") == (1, "output", "Model.part", "")
    deviation = run.row("numbers", "eager")["forward"]["deviation"]
    assert deviation["actual"] == pytest.approx(-deviation["expected"])
    assert difference(run, "forward", "compiled") == (1, "output", "Model", "")
    assert "an eager mode does" in run.row("numbers", "compiled")["forward"]["meaning"]
    assert run.row("numbers", "eager")["losses"]["first_difference"] == 1


@pytest.mark.profiled("drift.py", *EMULATED, "--mode", "eager", "--check-numbers", "1", arguments=("gradient",))
def test_a_gradient_that_is_wrong_on_a_tpu_is_named(run: Profiled) -> None:
    assert run.row("numbers", "eager")["forward"] is None
    assert difference(run, "backward") == (0, "gradient", "Model.part", "factor")
    deviation = run.row("numbers", "eager")["backward"]["deviation"]
    assert deviation["actual"] == pytest.approx(-deviation["expected"], rel=1e-4)


@pytest.mark.profiled("drift.py", *EMULATED, "--mode", "eager", "--check-numbers", "1", arguments=("index",))
def test_an_index_that_only_the_cpu_refuses_is_told(run: Profiled) -> None:
    assert run.failure() is None
    failure = run.result.document["numbers"]["reference_failure"]
    assert failure["what"].startswith("IndexError: index out of range")
    assert Path(failure["place"]["file"]).name == "drift.py"


@pytest.mark.profiled("drift.py", *EMULATED, "--mode", "eager", "--check-numbers", "1", arguments=("noise",))
def test_numbers_drawn_on_the_device_are_not_called_different(run: Profiled) -> None:
    found = run.row("numbers", "eager")["forward"]
    assert (found["module"], found["comparable"]) == ("Model.part", False)
