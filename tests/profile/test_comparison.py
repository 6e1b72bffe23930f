from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.profile.command import make_plan, make_session, tpuport
from tests.profile.test_output import BREAK, EAGER, FRAME, LINE, STARTED, program, session, steps
from tpuport.profile.analyses import analyse
from tpuport.profile.comparison import Comparison, Finding, Kind, compare
from tpuport.profile.places import Place
from tpuport.profile.plan import Device, Mode
from tpuport.profile.records import GraphBreak, HostSync, Recompile
from tpuport.profile.session import Session, load

SHORT = (3.0, 2.0, 1.0)
SIZE = "1/0: tensor 'x' size mismatch at index 0. expected 4, actual {}"
BEFORE: list[Any] = [
    STARTED,
    program(0),
    GraphBreak(0, 0, BREAK),
    Recompile(1, 1, (SIZE.format(3),)),
    Recompile(1, 2, (SIZE.format(2),)),
    FRAME,
    HostSync(1, ".item()", LINE, 2, 0.004),
    HostSync(1, "bool()", LINE, 1, 0.004),
    *steps(0.5, {0: 8}, SHORT),
]
AFTER: list[Any] = [
    STARTED,
    program(0),
    Recompile(1, 1, (SIZE.format(3),)),
    FRAME,
    HostSync(1, ".item()", replace(LINE, line=9), 1, 0.002),
    HostSync(1, "print", LINE, 1, 0.002),
    *steps(0.5, {0: 6}, SHORT),
]


def saved(folder: Path, compiled: list[Any], **plan: Any) -> Session:
    records = {Mode.EAGER: EAGER, Mode.COMPILED: compiled}
    return load(make_session(folder, records, plan=make_plan(modes=tuple(records), **plan)))


def compared(before: Session, after: Session) -> Comparison:
    return compare(analyse(before), analyse(after), (before.plan, after.plan))


@pytest.fixture
def change(tmp_path: Path) -> Comparison:
    return compared(saved(tmp_path / "before", BEFORE), saved(tmp_path / "after", AFTER))


def test_figures_are_paired_by_mode(change: Comparison) -> None:
    figures = {(item.where, item.what): (item.before.value, item.after.value, item.ratio) for item in change.changes}
    assert figures["compiled", "executions a step"] == (8, 6, 0.75)
    assert figures["eager", "executions a step"] == (12, 12, 1)
    assert change.remarks == ()


def test_what_came_and_went_is_counted(change: Comparison) -> None:
    counts = {(item.kind, item.what): (item.before, item.after) for item in change.findings}
    assert counts == {
        (Kind.GRAPH_BREAK, "Data-dependent branching"): (1, 0),
        (Kind.RECOMPILE, "size of `x` in dimension 0 changed"): (2, 1),
        (Kind.HOST_WAIT, ".item()"): (2, 1),
        (Kind.HOST_WAIT, "bool()"): (1, 0),
        (Kind.HOST_WAIT, "print"): (0, 1),
    }


def test_a_line_that_moved_is_shown_where_it_is_now(change: Comparison) -> None:
    (moved,) = [item for item in change.findings if item.what == ".item()"]
    assert moved == Finding(Kind.HOST_WAIT, ".item()", Place("model.py", 9, "forward"), "", 2, 1)


def test_what_makes_sessions_less_than_comparable_is_said(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    before = saved(tmp_path / "before", BEFORE, device=Device.CPU, arguments=())
    found = compared(before, session(tmp_path / "b", "failed"))
    assert found.remarks == (
        "not the same device: cpu before, emulated-tpu after",
        "not the same arguments: none before, --fast after",
        "compiled ran well before, and was not run after",
        "fused was not run before, and failed after",
    )


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ("text", "Graph breaks in the run: 1 → 0\n  gone (1× before)  model.py:7  Data-dependent branching"),
        ("text", "Recompiles in the run: 2 → 1\n  2× → 1×  –  size of `x` in dimension 0 changed"),
        ("text", "Host waits a step: 3 → 2\n"),
        ("text", "compiled  executions a step"),
        ("markdown", "**Graph breaks in the run: 1 → 0**\n\n- gone (1× before): model.py:7 Data-dependent branching"),
        ("markdown", "| compiled | executions a step | 8 | 6 | -25% | measured |"),
        ("json", '"kind": "graph break"'),
    ],
)
def test_a_comparison_is_printed(tmp_path: Path, chosen: str, expected: str) -> None:
    saved(tmp_path / "before", BEFORE)
    saved(tmp_path / "after", AFTER)
    result = tpuport("report", "--compare", "before", "after", "--format", chosen, cwd=tmp_path)
    assert (result.code, result.err) == (0, "")
    assert expected in result.out
