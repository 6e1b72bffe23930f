import io
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.profile.command import SCRIPTS, make_plan, make_session
from tpuport.output import profile_json, profile_markdown, profile_text
from tpuport.profile.analyses import analyse
from tpuport.profile.plan import Device, Mode
from tpuport.profile.records import (
    Ended,
    Enough,
    Frame,
    FrameCompiled,
    GraphBreak,
    HostSync,
    Note,
    Phase,
    Program,
    Recompile,
    Started,
    Step,
    StoodIn,
)
from tpuport.profile.session import Session, load

SNAPSHOTS = Path(__file__).parent / "snapshots"
WIDTH = 100
STARTED = Started("2.13.0", "tpu", ("/lib/",))
LINE = Frame("/project/model.py", 7, "forward")
BREAK = """Graph break in user code at /project/model.py:7
Graph Break Reason: Data-dependent branching
  Explanation: Dynamo does not support tracing dynamic control flow.
  Hint: Use `torch.cond` to express dynamic control flow.

 For more details about this graph break, please visit: https://example.org/gb/gb0170.html

User code traceback:
  File "/project/model.py", line 7, in forward
    if y.sum() > 0:
"""


def steps(scale: float, executions: dict[int, int] | None, losses: tuple[float, float, float]) -> list[Any]:
    return [
        Step(0, Phase.WARMUP, 9.0, 5, (losses[0],)),
        Step(1, Phase.COUNTED, 0.5, 0, (losses[1],), executions),
        Step(2, Phase.TIMED, 0.0101 * scale, 0, (losses[2],)),
        Step(3, Phase.TIMED, 0.0123 * scale, 0),
        Enough(),
        Ended("enough"),
    ]


def program(index: int) -> Program:
    return Program(index, "sha", 100, 0.125, False)


EAGER = [STARTED, program(0), program(1), *steps(1, {0: 10, 1: 2}, (3.0, 2.0, 1.0))]
FRAME = FrameCompiled(0, 0, "forward", "/project/model.py", 5, 6, 1.5, None, None)
COMPILED = [
    STARTED,
    program(0),
    GraphBreak(0, 0, BREAK),
    Recompile(1, 1, ("1/0: tensor 'x' size mismatch at index 0. expected 4, actual 3",)),
    FRAME,
    HostSync(1, ".item()", LINE, 2, 0.004),
    StoodIn("torch.cumsum", "shifted additions"),
    Note("stdin", "the script reads standard input, which is empty under tpuport", LINE),
]
SESSIONS: dict[str, tuple[Device, dict[Mode, list[Any]]]] = {
    "emulated": (
        Device.EMULATED_TPU,
        {Mode.EAGER: EAGER, Mode.COMPILED: [*COMPILED, *steps(0.5, {0: 3}, (3.0, 2.0, 1.0))]},
    ),
    "differing": (
        Device.EMULATED_TPU,
        {Mode.EAGER: EAGER, Mode.COMPILED: [*COMPILED, *steps(0.5, {0: 3}, (3.0, 2.5, 1.0))]},
    ),
    "cpu": (
        Device.CPU,
        {
            Mode.EAGER: [STARTED, *steps(1, None, (3.0, 2.0, 1.0))],
            Mode.COMPILED: [STARTED, FRAME, *steps(0.5, None, (3.0, 2.0, 1.0))],
        },
    ),
    "failed": (
        Device.EMULATED_TPU,
        {
            Mode.EAGER: EAGER,
            Mode.FUSED: [STARTED, Ended("raised", 1, "RuntimeError: no such thing", LINE)],
        },
    ),
    "nothing": (Device.CPU, {Mode.EAGER: [STARTED, Ended("finished")]}),
}


def session(folder: Path, name: str) -> Session:
    device, records = SESSIONS[name]
    return load(make_session(folder / "s", records, plan=make_plan(device=device, modes=tuple(records))))


def text(folder: Path, name: str) -> str:
    saved = session(folder, name)
    stream = io.StringIO()
    profile_text.render(saved, analyse(saved), Console(file=stream, width=WIDTH, _environ={}))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def markdown(folder: Path, name: str) -> str:
    saved = session(folder, name)
    return profile_markdown.render(saved, analyse(saved))


@pytest.mark.parametrize("name", SESSIONS)
def test_the_markdown_report_is_as_in_its_snapshot(tmp_path: Path, name: str) -> None:
    assert markdown(tmp_path, name) == (SNAPSHOTS / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SESSIONS)
def test_markdown_tables_have_as_many_cells_as_their_headers(tmp_path: Path, name: str) -> None:
    lines = markdown(tmp_path, name).splitlines()
    for before, line in pairwise(lines):
        if before.startswith("|") and line.startswith("|"):
            assert before.count("|") == line.count("|")


@pytest.mark.parametrize("name", SESSIONS)
def test_the_text_report_is_as_in_its_snapshot(tmp_path: Path, name: str) -> None:
    assert text(tmp_path, name) == (SNAPSHOTS / f"{name}.txt").read_text(encoding="utf-8")


def test_what_befell_all_modes_is_told_once(tmp_path: Path) -> None:
    failed = [STARTED, Ended("raised", 1, "TypeError: <class 'int'> | no", LINE)]
    records: dict[Mode, list[Any]] = dict.fromkeys((Mode.EAGER, Mode.FUSED, Mode.COMPILED), failed)
    saved = load(make_session(tmp_path / "s", records))
    analysed = analyse(saved)
    stream = io.StringIO()
    profile_text.render(saved, analysed, Console(file=stream, width=WIDTH, _environ={}))
    assert stream.getvalue().count("TypeError") == 1
    assert "eager, fused and compiled failed at model.py:7: TypeError: <class 'int'> | no" in stream.getvalue()
    page = profile_markdown.render(saved, analysed)
    assert page.count("TypeError") == 1
    assert "- **eager, fused and compiled failed** at model.py:7: TypeError: &lt;class 'int'> \\| no" in page


def test_a_reviewer_reads_the_point_before_anything_that_is_folded(tmp_path: Path) -> None:
    point, *folded = markdown(tmp_path, "emulated").split("<details>")
    assert "| **12 → 3** | **agree** | **1** | **1** | **2** |" in point
    assert "- model.py:7: Data-dependent branching (GB0170) → Compute both ways" in point
    assert len([line for line in point.splitlines() if line]) <= 10
    assert [part.partition("</summary>")[0] for part in folded] == [
        "<summary>Modes",
        "<summary>Graph breaks: 1",
        "<summary>Recompiles: 1",
        "<summary>Host waits in a step: 1",
        "<summary>Notes: 2",
    ]


@pytest.mark.parametrize("modes", [(Mode.EAGER,), (Mode.EAGER, Mode.COMPILED)])
def test_without_losses_the_comparison_is_spoken_of_only_where_there_could_be_one(
    tmp_path: Path, modes: tuple[Mode, ...]
) -> None:
    silent = [STARTED, FRAME, Step(0, Phase.TIMED, 0.1, 0), Step(1, Phase.TIMED, 0.1, 0), Enough(), Ended("enough")]
    plan = make_plan(device=Device.CPU, modes=modes)
    saved = load(make_session(tmp_path / "s", dict.fromkeys(modes, silent), plan=plan))
    stream = io.StringIO()
    profile_text.render(saved, analyse(saved), Console(file=stream, width=WIDTH, _environ={}))
    said = "Losses: none seen (no backward() was called), so the modes' results were not compared."
    assert (said in stream.getvalue()) == (len(modes) > 1)
    assert ("Losses" in stream.getvalue()) == (len(modes) > 1)


@pytest.mark.parametrize(("ran", "left"), [((), "eager, compiled"), ((Mode.EAGER,), "compiled")])
def test_modes_that_an_interruption_has_left_out_are_named(tmp_path: Path, ran: tuple[Mode, ...], left: str) -> None:
    saved = load(make_session(tmp_path / "s", dict.fromkeys(ran, EAGER), plan=make_plan()))
    stream = io.StringIO()
    profile_text.render(saved, analyse(saved), Console(file=stream, width=WIDTH, _environ={}))
    assert f"- {left}: not run, as profiling ended before\n" in stream.getvalue()


def test_lines_of_which_the_same_is_said_share_it(tmp_path: Path) -> None:
    waits = [HostSync(1, ".item()", LINE, 2, 0.004), HostSync(1, "bool()", replace(LINE, line=9), 2, 0.004)]
    saved = load(make_session(tmp_path / "s", {Mode.EAGER: [STARTED, *waits, *EAGER[1:]]}))
    stream = io.StringIO()
    profile_text.render(saved, analyse(saved), Console(file=stream, width=WIDTH, _environ={}))
    assert "model.py:7  .item()  2× a step  4 ms a step (emulated)\nmodel.py:9  bool()" in stream.getvalue()
    assert stream.getvalue().count("Keep it a tensor") == 1


def test_a_difference_comes_before_every_gain(tmp_path: Path) -> None:
    report = text(tmp_path, "differing")
    assert report.index("Losses DIFFER") < report.index("A step")
    assert "Against eager" not in report


def test_the_json_report_labels_every_figure(tmp_path: Path) -> None:
    saved = session(tmp_path, "emulated")
    document = json.loads(profile_json.render(saved, analyse(saved)))
    assert (document["schema"], document["version"]) == ("tpuport.profile", 1)
    eager = document["modes"]["rows"][0]
    assert eager["step_time"]["median"] == {"value": 0.0112, "unit": "s", "basis": "emulated"}
    assert document["programs"]["rows"][0]["executions"] == {"value": 12, "unit": "", "basis": "measured"}
    (graph_break,) = document["graph_breaks"]["rows"]
    assert graph_break["place"] == {"file": "model.py", "line": 7, "function": "forward"}
    assert document["losses"]["rows"][0]["compared"] == 3


def test_numbers_that_json_lacks_are_null(tmp_path: Path) -> None:
    records: dict[Mode, list[Any]] = {
        Mode.EAGER: [STARTED, Step(0, Phase.TIMED, 0.1, 0, (1.0,))],
        Mode.FUSED: [STARTED, Step(0, Phase.TIMED, 0.1, 0, (float("nan"),))],
    }
    saved = load(make_session(tmp_path / "s", records))
    document = json.loads(profile_json.render(saved, analyse(saved)))
    assert document["losses"]["rows"][0]["max_absolute"] is None


def test_fixture_scripts_are_where_the_tests_look() -> None:
    assert (SCRIPTS / "train.py").is_file()
