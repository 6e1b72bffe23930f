import json
from importlib.util import find_spec
from pathlib import Path

from tests.profile.command import make_plan, make_session
from tpuport.catalog import load as load_catalog
from tpuport.profile.analyses import advice
from tpuport.profile.analyses.graph_breaks import analyse_graph_breaks, parse
from tpuport.profile.places import Place
from tpuport.profile.plan import Mode
from tpuport.profile.records import FrameCompiled, GraphBreak, Started
from tpuport.profile.session import load

TEXT = """Graph break in user code at {file}:{line}
Graph Break Reason: Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):

Failed to trace builtin operator
  Explanation: Dynamo does not know how to trace builtin operator `print`
    with these arguments.
  Hint: Avoid calling `print`.
  Hint: Please report an issue to PyTorch.
  Hint: Avoid calling `print`.

  Developer debug context: builtin print <object at 0x7f00>

 For more details about this graph break, please visit: https://example.org/gb/gb0059.html

User code traceback:
  File "/project/train.py", line 30, in <module>
    loss = model(x)
  File "/lib/torch/module.py", line 17, in _call_impl
    return forward_call(*args)
  File "{file}", line {line}, in {function}
    print("x")

Traceback (most recent call last):
  File "/project/not_this.py", line 1, in wrapper
"""
STARTED = Started("2.13.0", "tpu", ("/lib/",))


def graph_break(frame: int, file: str = "/project/model.py", line: int = 7, function: str = "forward") -> GraphBreak:
    return GraphBreak(frame, 0, TEXT.format(file=file, line=line, function=function))


def test_dynamos_text_is_taken_apart() -> None:
    parsed = parse(graph_break(0).text)
    assert parsed.id == "GB0059"
    assert parsed.reason == "Failed to trace builtin operator"
    assert parsed.explanation == "Dynamo does not know how to trace builtin operator `print` with these arguments."
    assert parsed.hints == ("Avoid calling `print`.",)
    assert [frame.line for frame in parsed.stack] == [30, 17, 7]


def test_a_text_of_another_shape_is_kept() -> None:
    parsed = parse("something new")
    assert (parsed.reason, parsed.id, parsed.stack) == ("unknown reason", "", ())


def test_a_break_reported_again_for_every_caller_counts_once(tmp_path: Path) -> None:
    records = [STARTED, graph_break(0), graph_break(1), graph_break(2), graph_break(2)]
    session = load(make_session(tmp_path / "s", {Mode.COMPILED: records}))
    (row,) = analyse_graph_breaks(session).rows
    assert (row.place, row.count, row.modes) == (Place("model.py", 7, "forward"), 2, (Mode.COMPILED,))


def test_a_break_inside_a_library_is_placed_at_the_users_line(tmp_path: Path) -> None:
    records = [STARTED, graph_break(0, "/lib/timm/layers.py", 99)]
    session = load(make_session(tmp_path / "s", {Mode.COMPILED: records}))
    (row,) = analyse_graph_breaks(session).rows
    assert row.place == Place("train.py", 30, "<module>")


def test_resumed_functions_carry_their_own_name(tmp_path: Path) -> None:
    records = [STARTED, graph_break(0, function="torch_dynamo_resume_in_forward_at_5")]
    session = load(make_session(tmp_path / "s", {Mode.COMPILED: records}))
    assert analyse_graph_breaks(session).rows[0].place == Place("model.py", 7, "forward")


def test_rows_of_several_modes_are_one(tmp_path: Path) -> None:
    records = {Mode.COMPILED: [STARTED, graph_break(0)], Mode.COMPILED_FUSED: [STARTED, graph_break(0), graph_break(0)]}
    session = load(make_session(tmp_path / "s", records, plan=make_plan(modes=tuple(records))))
    (row,) = analyse_graph_breaks(session).rows
    assert (row.count, row.modes) == (2, (Mode.COMPILED, Mode.COMPILED_FUSED))


def resumed(frame: int, line: int, operations: int = 3, version: int = 0) -> FrameCompiled:
    name = f"torch_dynamo_resume_in_forward_at_{line}"
    return FrameCompiled(frame, version, name, "/project/model.py", 5, operations, 0.1, None, None)


def test_the_graphs_after_a_break_are_its_cost(tmp_path: Path) -> None:
    records = [STARTED, graph_break(0), resumed(1, 7), resumed(1, 7, version=1), resumed(2, 7), resumed(3, 9)]
    session = load(make_session(tmp_path / "s", {Mode.COMPILED: records}))
    assert analyse_graph_breaks(session).rows[0].graphs == 2


def test_what_follows_a_break_without_an_operation_costs_no_graph(tmp_path: Path) -> None:
    session = load(make_session(tmp_path / "s", {Mode.COMPILED: [STARTED, graph_break(0), resumed(1, 7, 0)]}))
    assert analyse_graph_breaks(session).rows[0].graphs == 0


def test_known_kinds_come_with_plain_words_and_an_edit(tmp_path: Path) -> None:
    session = load(make_session(tmp_path / "s", {Mode.COMPILED: [STARTED, graph_break(0)]}))
    (row,) = analyse_graph_breaks(session).rows
    assert "print" in row.plain
    assert "torch.compiler.is_compiling" in row.edit


def test_every_kind_with_advice_is_in_torchs_registry_and_every_rule_exists() -> None:
    torch = find_spec("torch")
    assert torch is not None
    assert torch.origin is not None
    registry = Path(torch.origin).parent / "_dynamo" / "graph_break_registry.json"
    known = json.loads(registry.read_text(encoding="utf-8"))
    assert set(advice._BREAKS) <= set(known)
    kinds = (
        *advice._BREAKS.values(),
        advice.BATCH_SIZE,
        advice.LENGTH,
        advice.NUMBER,
        advice.GRADIENTS,
        advice.TYPE,
        advice.HOST_READ,
    )
    catalog = load_catalog()
    assert all(catalog.get(kind.rule) for kind in kinds if kind.rule)


def test_a_break_inside_a_package_is_told_with_its_place_there_and_no_rule_for_the_users_line(tmp_path: Path) -> None:
    mask = ("/lib/site-packages/torch/nn/modules/transformer.py", 1245, "_detect_is_causal_mask")
    other = ("/lib/site-packages/other/model.py", 3, "check")
    breaks = [graph_break(index, *where).text.replace("gb0059", "gb0124") for index, where in enumerate((mask, other))]
    records = [STARTED, *(GraphBreak(index, 0, text) for index, text in enumerate(breaks))]
    found = analyse_graph_breaks(load(make_session(tmp_path / "s", {Mode.COMPILED: records}))).rows
    assert [row.plain.partition(" (")[2] for row in found] == [
        "at other/model.py:3, in check)",
        "at torch/nn/modules/transformer.py:1245, in _detect_is_causal_mask)",
    ]
    assert {(row.place, row.rule) for row in found} == {(Place("train.py", 30, "<module>"), "")}
    assert ["is_causal=True" in row.edit for row in found] == [False, True]
