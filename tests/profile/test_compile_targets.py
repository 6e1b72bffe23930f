"""What is compiled: what --compile-target names, models whose forward() is called past __call__, optimizers' steps."""

from typing import Any

import pytest

from tests.profile.command import Profiled, profile
from tpuport.profile.instruments.targets import Target
from tpuport.profile.records import FILE_NAME, Root, read_records

OPTIONS = ("--steps", "2", "--warmup", "2", "--timeout", "120")
EMULATED = ("--device", "emulated-tpu", *OPTIONS)
CPU = ("--device", "cpu", "--mode", "eager", *OPTIONS)


def targets(*names: str) -> tuple[str, ...]:
    return tuple(word for name in names for word in ("--compile-target", name))


def modes(*names: str) -> tuple[str, ...]:
    return tuple(word for name in names for word in ("--mode", name))


def roots(run: Profiled, mode: str = "compiled") -> list[str]:
    return [root.module for root in read_records(run.session / mode / FILE_NAME).of(Root)]


@pytest.mark.parametrize(
    "expected",
    [
        pytest.param(
            expected, marks=pytest.mark.profiled("targets.py", *EMULATED, *modes("compiled"), *targets(*names))
        )
        for names, expected in (
            (("Net.encode", "package.steps:half_step", "net.head"), ["half_step", "encode", "Linear"]),
            (("targets:Block", "penalty"), ["penalty", "Block", "Block"]),
        )
    ],
)
def test_targets_are_compiled_and_nothing_else(run: Profiled, expected: list[str]) -> None:
    assert run.result.code == 0, run.result.err
    assert roots(run) == expected
    assert run.row("modes", "compiled")["step_source"] == "optimizer"
    assert run.result.document["graph_breaks"]["rows"] == []


@pytest.mark.profiled("functions.py", *EMULATED, *modes("eager", "compiled", "compiled-fused"), *targets("apply"))
def test_functions_without_a_module_are_steps_when_they_are_targets(run: Profiled) -> None:
    assert run.result.code == 0, run.result.err
    for mode in ("eager", "compiled", "compiled-fused"):
        row = run.row("modes", mode)
        assert (row["step_source"], row["step_name"], row["step_time"]["steps"]) == ("call", "apply", 2)
    assert roots(run) == ["apply"]
    # The second run of the same graph compiles it again: nothing comes from what the first may have kept on disk.
    for mode in ("compiled", "compiled-fused"):
        row = run.row("programs", mode)
        assert (row["executions"]["value"], row["compiled"]["value"]) == (1, 1)
    assert run.row("programs", "eager")["executions"]["value"] > 1


@pytest.mark.profiled("functions.py", *CPU)
def test_a_script_of_functions_is_told_what_to_name(run: Profiled) -> None:
    assert run.result.code == 3
    assert "`--compile-target FUNCTION`" in run.failure()["hint"]


@pytest.mark.profiled("targets.py", *CPU, *targets("Blok", "penalty"))
def test_a_target_that_names_nothing_is_refused_with_what_there_is(run: Profiled) -> None:
    assert run.result.code == 2
    said = " ".join(run.result.err.split())
    assert "--compile-target 'Blok' names nothing in the script" in said
    assert "it has called or defined: Block, Linear, ModuleList, Net, half_step(), penalty()" in said


@pytest.mark.profiled("functions.py", *EMULATED, *modes("eager", "compiled"), arguments=("forward",))
def test_forward_called_directly_is_a_model_call(run: Profiled) -> None:
    assert run.result.code == 0, run.result.err
    assert {row["step_name"] for row in run.result.document["modes"]["rows"]} == {"Net"}
    assert roots(run) == ["Net"]
    assert run.row("programs", "compiled")["graphs"]["value"] == 1


@pytest.fixture(scope="module")
def stepped(tmp_path_factory: pytest.TempPathFactory) -> Profiled:
    names = ("eager", "compiled", "compiled-step")
    return profile(tmp_path_factory.mktemp("stepped"), "train.py", *EMULATED, *modes(*names))


def test_the_optimizers_step_is_compiled_too_and_computes_the_same(stepped: Profiled) -> None:
    assert stepped.result.code == 0, stepped.result.err
    executions = {row["mode"]: row["executions"]["value"] for row in stepped.result.document["programs"]["rows"]}
    assert executions["compiled-step"] < executions["compiled"] < executions["eager"]
    assert [row["first_difference"] for row in stepped.result.document["losses"]["rows"]] == [None, None]
    assert stepped.result.document["graph_breaks"]["rows"] == []
    assert stepped.row("programs", "compiled-step")["graphs"]["value"] == 2


def test_what_was_changed_in_the_optimizer_is_said(stepped: Profiled) -> None:
    (remark,) = stepped.row("modes", "compiled-step")["remarks"]
    assert remark["text"] == "the step of AdamW is compiled too, with capturable=True and its learning rate as a tensor"


@pytest.mark.profiled("two_optimizers.py", *EMULATED, *modes("eager", "compiled-step"))
def test_two_optimizers_one_with_a_schedule_and_one_fused_are_compiled_once(run: Profiled) -> None:
    assert run.result.code == 0, run.result.err
    assert run.result.document["recompiles"] == {"rows": [], "limits": []}
    assert run.result.document["graph_breaks"]["rows"] == []
    assert [row["first_difference"] for row in run.result.document["losses"]["rows"]] == [None]
    (remarks,) = [row["remarks"] for row in run.result.document["modes"]["rows"] if row["mode"] == "compiled-step"]
    assert any(
        "the step of AdamW is compiled too" in remark["text"] and "without fused=True" in remark["text"]
        for remark in remarks
    )
    assert run.row("programs", "compiled-step")["graphs"]["value"] == 4
    assert run.row("modes", "compiled-step")["step_time"]["steps"] == 2


@pytest.mark.profiled("inference.py", *EMULATED, *modes("compiled-step"))
def test_without_an_optimizer_its_step_cannot_be_compiled(run: Profiled) -> None:
    assert run.result.code == 3
    assert run.failure("compiled-step")["what"].startswith("no optimizer's step was compiled")


@pytest.mark.parametrize(
    ("text", "module", "path"),
    [
        ("pack.mod:Net.encode", "pack.mod", ("Net", "encode")),
        ("pack.mod:Net", "pack", ()),
        ("pack.mod.Net", "pack", ("mod", "Net")),
        ("pack.mod.Net", "pack.mod", ("Net",)),
        ("Net", "pack.mod", ()),
        ("package.Net", "pack", ()),
    ],
)
def test_where_a_target_lies(text: str, module: str, path: tuple[str, ...]) -> None:
    assert Target(text).path_in(module) == path


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("OrderedDict", True),
        ("collections.OrderedDict", True),
        ("collections:OrderedDict", True),
        ("train:OrderedDict", False),
        ("Dict", False),
    ],
)
def test_a_class_is_named_with_or_without_its_module(text: str, named: bool) -> None:
    from collections import OrderedDict

    assert Target(text).is_class(OrderedDict, ("__main__", "train")) is named


def test_a_class_of_the_script_is_named_by_the_scripts_name() -> None:
    kind: Any = type("Net", (), {"__module__": "__main__"})
    assert Target("train:Net").is_class(kind, ("__main__", "train"))
    assert Target("__main__.Net").is_class(kind, ("__main__", "train"))
