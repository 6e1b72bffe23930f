"""The real torch_tpu on the emulated TPU, and torch.compile: few runs, many assertions on each."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.profile.command import SCRIPTS, Profiled, profile, tpuport
from tpuport.profile.standins import OPERATIONS

OPTIONS = ("--device", "emulated-tpu", "--steps", "3", "--warmup", "2", "--timeout", "120")


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Profiled:
    return profile(tmp_path_factory.mktemp("training"), "train.py", *OPTIONS, "--check-numbers", "2")


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Profiled:
    return profile(tmp_path_factory.mktemp("breaks"), "graph_breaks.py", *OPTIONS, "--mode", "compiled")


@pytest.fixture(scope="module")
def recompiled(tmp_path_factory: pytest.TempPathFactory) -> Profiled:
    return profile(tmp_path_factory.mktemp("recompiles"), "recompiles.py", *OPTIONS, "--mode", "compiled")


@pytest.fixture(scope="module")
def stood_in(tmp_path_factory: pytest.TempPathFactory) -> Profiled:
    modes = ("--mode", "eager", "--mode", "compiled-fused")
    return profile(tmp_path_factory.mktemp("stand-ins"), "stand_ins.py", *OPTIONS, *modes)


def places(rows: Any) -> list[tuple[str, int, int]]:
    return sorted((Path(row["place"]["file"]).name, row["place"]["line"], row["count"]) for row in rows)


def test_three_modes_complete(training: Profiled) -> None:
    assert training.result.code == 0
    rows = training.result.document["modes"]["rows"]
    assert [row["mode"] for row in rows] == ["eager", "fused", "compiled"]
    assert all(row["failure"] is None and row["step_time"]["steps"] == 3 for row in rows)
    assert {row["step_source"] for row in rows} == {"optimizer"}
    assert {row["step_name"] for row in rows} == {"AdamW"}


def test_step_times_are_named_emulated(training: Profiled) -> None:
    for row in training.result.document["modes"]["rows"]:
        assert {row["step_time"][name]["basis"] for name in ("median", "lowest", "highest")} == {"emulated"}


def test_fused_and_compiled_modes_execute_less(training: Profiled) -> None:
    executions = {row["mode"]: row["executions"]["value"] for row in training.result.document["programs"]["rows"]}
    assert 0 < executions["fused"] < executions["eager"]
    assert 0 < executions["compiled"] < executions["eager"]


def test_distinct_programs_are_at_most_the_executions_and_the_compilations(training: Profiled) -> None:
    for row in training.result.document["programs"]["rows"]:
        assert 0 < row["distinct"]["value"] <= row["executions"]["value"]
        assert row["distinct"]["value"] <= row["compiled"]["value"]


def test_one_graph_is_compiled_and_only_in_compiled_mode(training: Profiled) -> None:
    graphs = {row["mode"]: row["graphs"] for row in training.result.document["programs"]["rows"]}
    assert (graphs["eager"], graphs["fused"], graphs["compiled"]["value"]) == (None, None, 1)


def test_losses_agree(training: Profiled) -> None:
    losses = training.result.document["losses"]
    assert losses["reference"] == "eager"
    assert [(row["mode"], row["first_difference"]) for row in losses["rows"]] == [("fused", None), ("compiled", None)]
    assert all(row["compared"] >= 7 for row in losses["rows"])


def test_numbers_agree_with_the_cpu_in_every_mode(training: Profiled) -> None:
    numbers = training.result.document["numbers"]
    assert (numbers["checked_steps"], numbers["reference_failure"]) == (2, None)
    assert [(row["mode"], row["reference"], row["parts_seen"]) for row in numbers["rows"]] == [
        ("eager", "cpu-float32", True),
        ("fused", "cpu-float32", True),
        ("compiled", "cpu-float32", False),
    ]
    for row in numbers["rows"]:
        assert (row["forward"], row["backward"], row["losses"]["first_difference"]) == (None, None, None)
        # Two steps: four weights and four gradients, and what goes into the model and comes out of it.
        assert row["compared"] == (2 * (4 + 4 + 2) if row["mode"] == "compiled" else 2 * (4 + 4 + 2 * 4))
        assert row["losses"]["compared"] == 3


def test_a_clean_script_has_no_breaks_and_no_recompiles(training: Profiled) -> None:
    assert training.result.document["graph_breaks"]["rows"] == []
    assert training.result.document["recompiles"]["rows"] == []


def test_the_saved_session_gives_the_same_report(training: Profiled) -> None:
    again = tpuport("report", training.session, "--json", cwd=training.session)
    assert again.code == 0
    assert json.loads(again.out) == training.result.document


def test_the_text_report_is_free_of_the_runtimes_chatter(training: Profiled) -> None:
    shown = tpuport("report", training.session, cwd=training.session)
    assert "A step (times emulated)" in shown.out
    assert "PrivateUse1" not in shown.out
    assert shown.err == ""


def test_exactly_the_known_graph_breaks_are_found(broken: Profiled) -> None:
    assert broken.result.code == 0
    rows = broken.result.document["graph_breaks"]["rows"]
    assert places(rows) == [("graph_breaks.py", 16, 1), ("graph_breaks.py", 17, 1)]
    assert [row["id"] for row in rows] == ["GB0059", "GB0170"]
    assert all(row["hints"] and row["plain"] and row["edit"] for row in rows)
    assert [row["graphs"] for row in rows] == [1, 1]
    assert [row["source"] for row in rows] == ['print("a line of progress")', "if y.sum() > 1e9:"]
    assert [row["rule"] for row in rows] == ["", "host-sync"]
    assert broken.row("programs", "compiled")["graphs"]["value"] == 3


def test_a_branch_on_a_tensor_is_a_wait_too_and_printing_text_is_none(broken: Profiled) -> None:
    (row,) = broken.result.document["host_syncs"]["rows"]
    assert (row["place"]["line"], row["what"], row["count"]) == (17, "bool()", 1)


KNOWN_WAITS = (
    (20, ".item()", 1),
    (42, ".item()", 1),
    (43, "bool()", 1),
    (44, "float()", 1),
    (45, "print", 1),
    (46, "print", 1),
    (47, ".cpu()", 1),
    (48, ".copy_() to the CPU", 1),
    (49, ".to() the CPU", 1),
    (49, ".tolist()", 1),
    (51, ".nonzero()", 1),
    (52, "torch.nonzero()", 1),
    (53, "torch.where()", 1),
    # The host waits for the mask, and for how many it selects.
    (54, "indexing by a tensor", 2),
    (55, ".masked_select()", 1),
    (56, "bool()", 1),
    (57, "torch.equal()", 1),
    (58, "indexing by a tensor", 1),
    (59, "indexing by a tensor", 1),
    (60, "use as an index", 1),
    (61, "float()", 2),
    (62, "torch.save()", 1),
    (63, "nn.functional.one_hot()", 1),
    (64, "torch.zeros()", 1),
    (65, "torch.unique()", 1),
    (66, "print", 1),
    (67, ".repeat_interleave()", 1),
    (68, "bool()", 1),
)
"""Line, how, and how often in a step."""


@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_exactly_the_known_waits_of_the_host_are_found(tmp_path: Path, mode: str) -> None:
    run = profile(tmp_path, "host_syncs.py", *OPTIONS, "--mode", mode)
    assert run.result.code == 0, run.result.err
    rows = {(row["place"]["line"], row["what"], row["count"]): row for row in run.result.document["host_syncs"]["rows"]}
    (in_torch,) = set(rows) - set(KNOWN_WAITS)
    assert in_torch[0] == 50
    assert re.fullmatch(r"bool\(\) in \w+ \(torch/nn/utils/clip_grad\.py:\d+\)", in_torch[1])
    assert rows.pop(in_torch)["edit"].startswith("It is not your line")
    assert list(rows) == [*KNOWN_WAITS]
    times = [row["seconds"] for row in rows.values() if row["seconds"] is not None]
    assert all(time["value"] > 0 and time["basis"] == "emulated" for time in times)
    assert {what for (_, what, _), row in rows.items() if row["seconds"] is None} == {
        ".item()", "torch.nonzero()", "torch.where()", "indexing by a tensor", "torch.equal()", "torch.save()",
        "nn.functional.one_hot()", "torch.zeros()", "torch.unique()", ".repeat_interleave()",
    }  # fmt: skip
    assert {row["rule"] for (line, _, _), row in rows.items() if line < 51} == {"host-sync"}
    assert rows[42, ".item()", 1]["source"] == "number = values.item()"
    assert run.row("modes", mode)["step_time"]["steps"] == 3


def test_a_script_that_keeps_its_values_on_the_device_waits_nowhere(training: Profiled) -> None:
    assert training.result.document["host_syncs"] == {"counted": True, "rows": []}


def test_exactly_the_known_recompiles_are_found(recompiled: Profiled) -> None:
    assert recompiled.result.code == 0
    rows = recompiled.result.document["recompiles"]["rows"]
    assert {row["cause"]: row["count"] for row in rows} == {
        "size of `x` in dimension 0 changed": 1,
        "value of `scale` changed": 2,
    }
    assert places(rows) == [("recompiles.py", 15, 2), ("recompiles.py", 23, 1)]
    changes = {row["cause"]: row["changes"] for row in rows}
    assert changes["size of `x` in dimension 0 changed"] == ["4 → 3"]
    assert changes["value of `scale` changed"][0].startswith("1 → ")
    assert all(row["seconds"]["value"] > 0 and row["seconds"]["basis"] == "emulated" for row in rows)
    assert {row["rule"] for row in rows} == {"partial-batch", ""}
    assert recompiled.result.document["recompiles"]["limits"] == []
    assert recompiled.row("programs", "compiled")["graphs"]["value"] == 4


def test_the_recompile_limit_is_named(tmp_path: Path) -> None:
    run = profile(tmp_path, "recompile_limit.py", *OPTIONS, "--mode", "compiled")
    assert run.result.code == 0
    recompiles = run.result.document["recompiles"]
    assert places([dict(limit, count=1) for limit in recompiles["limits"]]) == [("recompile_limit.py", 21, 1)]
    assert sum(row["count"] for row in recompiles["rows"]) == 7


def test_inference_is_measured_by_model_calls(tmp_path: Path) -> None:
    run = profile(tmp_path, "inference.py", *OPTIONS, "--mode", "compiled")
    assert run.result.code == 0
    row = run.row("modes", "compiled")
    assert (row["step_source"], row["step_name"], row["step_time"]["steps"]) == ("call", "Sequential", 3)
    assert run.result.document["losses"]["reference"] is None
    assert run.row("programs", "compiled")["graphs"]["value"] == 1


def test_the_scripts_own_compile_calls_are_passed_through_or_honoured(tmp_path: Path) -> None:
    modes = ("--mode", "eager", "--mode", "compiled")
    run = profile(tmp_path, "user_compile.py", *OPTIONS, *modes)
    assert run.result.code == 0
    (remark,) = run.row("modes", "eager")["remarks"]
    assert "passed through" in remark["text"]
    assert remark["place"]["line"] == 23
    assert run.row("programs", "compiled")["graphs"]["value"] == 3
    assert run.result.document["graph_breaks"]["rows"] == []
    assert run.result.document["recompiles"]["rows"] == []
    assert run.result.document["losses"]["rows"][0]["first_difference"] is None


def test_a_script_that_stays_on_the_cpu_is_no_measurement_of_a_tpu(tmp_path: Path) -> None:
    run = profile(tmp_path, "cuda_only.py", *OPTIONS, "--mode", "eager")
    assert run.result.code == 3
    assert "nothing ran on the TPU" in run.failure()["what"]
    assert "tpuport migrate" in run.failure()["hint"]


def test_a_script_that_insists_on_cuda_is_sent_to_migrate(tmp_path: Path) -> None:
    run = profile(tmp_path, "cuda_only.py", *OPTIONS, "--mode", "eager", arguments=("--insist",))
    assert run.result.code == 3
    assert "tpuport migrate" in run.failure()["hint"]


def test_what_is_stood_in_for_computes_the_same_and_is_listed(stood_in: Profiled) -> None:
    assert stood_in.result.code == 0, stood_in.result.out
    listed = {item["what"] for row in stood_in.result.document["modes"]["rows"] for item in row["stand_ins"]}
    features = {"pinned memory", "memory statistics", "flash attention", "non_blocking copies from the device"}
    # The script does not call it.
    unreached = {"torch.linalg.lu"}
    assert {stand_in.what for stand_in in OPERATIONS} | features >= listed
    assert ({stand_in.what for stand_in in OPERATIONS} | features) - unreached <= listed


def test_what_the_emulation_cannot_run_is_not_blamed_on_the_script(tmp_path: Path) -> None:
    run = profile(tmp_path, "unsupported.py", *OPTIONS, "--mode", "compiled", arguments=("graph",))
    assert run.result.code == 3
    failure = run.failure("compiled")
    assert "aten::linalg_lu_factor_ex" in failure["what"]
    assert "a TPU can" in failure["hint"]
    assert failure["place"]["function"] == "forward"


def test_a_check_of_torch_tpu_that_ends_the_process_is_told_with_its_line(tmp_path: Path) -> None:
    run = profile(tmp_path, "unsupported.py", *OPTIONS, "--mode", "eager", arguments=("check",))
    assert run.result.code == 3
    failure = run.failure()
    assert failure["what"].startswith("the process was ended by SIGABRT before its first step: scatter.cc:")
    assert "expect the same on a TPU" in failure["hint"]
    # Where the script waited for the work that it had started before.
    assert failure["place"]["line"] == 29


@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_a_norm_that_torch_tpu_cannot_compile_is_told_with_its_remedy(tmp_path: Path, mode: str) -> None:
    run = profile(tmp_path, "unsupported.py", *OPTIONS, "--mode", mode, arguments=("norm",))
    failure = run.failure(mode)
    assert "`layer_norm`" in failure["hint"]
    assert "norm(x.float())" in failure["hint"]


def test_a_norm_of_what_is_not_contiguous_is_told_with_its_remedy(tmp_path: Path) -> None:
    run = profile(tmp_path, "unsupported.py", *OPTIONS, "--mode", "eager", arguments=("groups",))
    failure = run.failure()
    assert "`x.contiguous()`" in failure["hint"]
    assert failure["place"]["line"] == 21


def test_a_crash_in_one_mode_loses_only_that_mode(tmp_path: Path) -> None:
    script = (SCRIPTS / "train.py").read_text()
    (tmp_path / "fragile.py").write_text(
        script.replace("model(inputs)", "model(inputs if not torch.compiler.is_compiling() else 1 / 0)")
        + "\nassert model._compiled_call_impl is None\n"
    )
    options = ("--mode", "eager", "--mode", "compiled", "--steps", "50")
    run = profile(tmp_path, tmp_path / "fragile.py", *OPTIONS, *options, arguments=("--iterations", "4"))
    assert run.result.code == 0
    assert run.failure("eager") is None
    assert run.failure("compiled")["what"] == "AssertionError (after 4 steps)"
    assert Path(run.failure("compiled")["place"]["file"]).name == "fragile.py"


def test_gradients_that_a_compiled_recurrence_loses_are_told_with_what_keeps_them(tmp_path: Path) -> None:
    run = profile(tmp_path, "recurrence.py", *OPTIONS, "--mode", "compiled")
    failure = run.failure("compiled")
    assert failure["what"].startswith("AssertionError: nothing was learnt")
    assert "(rnn: nn.LSTM)" in failure["hint"]
    assert "`rnn.forward = torch.compiler.disable(rnn.forward)`" in failure["hint"]


def test_a_recurrence_that_is_kept_out_of_the_graph_learns(tmp_path: Path) -> None:
    run = profile(tmp_path, "recurrence.py", *OPTIONS, "--mode", "compiled", arguments=("disabled",))
    assert run.result.code == 0, run.result.err
    assert not any("loses the gradients" in remark["text"] for remark in run.row("modes", "compiled")["remarks"])
