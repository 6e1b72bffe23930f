from itertools import pairwise
from pathlib import Path

import pytest

from tests.profile.command import make_session
from tpuport.profile.analyses.guards import cause_of
from tpuport.profile.analyses.recompiles import Recompiles, analyse_recompiles
from tpuport.profile.figures import Basis, Figure
from tpuport.profile.places import Place
from tpuport.profile.plan import Mode
from tpuport.profile.records import Frame, FrameCompiled, FrameStarted, Recompile, Root, Started
from tpuport.profile.session import load

STARTED = Started("2.13.0", "tpu", ("/lib/",))
CALL = Frame("/project/train.py", 9, "<module>")
ROOT = FrameStarted(0, 0, (CALL, Frame("/lib/tpuport/wrapper.py", 1, "Model")))
FORWARD = FrameStarted(1, 0, (CALL, Frame("/project/model.py", 4, "forward")))
VALUE = """n == 0   # return x * n  # /project/model.py:6 in forward
User stack trace:
  File "/project/model.py", line 6, in forward
    return x * n"""


def size(name: str, old: int, new: int) -> str:
    return f"tensor '{name}' size mismatch at index 0. expected {old}, actual {new}"


def needs_gradient(expected: int) -> str:
    return f"tensor 'x' requires_grad mismatch. expected requires_grad={expected}"


def keys(old: str, new: str) -> str:
    return f"tensor 'x' dispatch key set mismatch. expected DispatchKeySet({old}), actual DispatchKeySet({new})"


def compiled(frame: int, version: int, operations: int = 3, failure: str | None = None) -> FrameCompiled:
    reason = failure and "recompile_limit hit"
    return FrameCompiled(frame, version, "f", "/project/model.py", 4, operations, 0.1, failure, reason)


def analysed(folder: Path, *records: object) -> Recompiles:
    return analyse_recompiles(load(make_session(folder / "s", {Mode.COMPILED: [STARTED, ROOT, FORWARD, *records]})))


def test_a_first_dimension_of_many_sizes_is_a_length(tmp_path: Path) -> None:
    sizes = (61, 77, 78, 69, 76, 96)
    records: list[object] = [compiled(1, 0)]
    for version, (old, new) in enumerate(pairwise(sizes), 1):
        guards = (f"1/{version - 1}: {size('x', old, new)}",)
        records += [FrameStarted(1, version, FORWARD.stack), Recompile(1, version, guards), compiled(1, version)]
    (row,) = analysed(tmp_path, *records).rows
    assert row.edit.startswith("Pad to one of a few fixed lengths")


def test_a_cache_that_grows_is_told_from_inputs_of_other_lengths() -> None:
    grows = "tensor '{}' size mismatch at index 2. expected 12, actual 13"
    assert "static" in cause_of(grows.format("past_key_values.layers[0].keys")).advice.edit
    assert "buckets" in cause_of(grows.format("x")).advice.edit


@pytest.mark.parametrize(("line", "edit"), [(9, "Give the DataLoader drop_last"), (40, "Nothing to do")])
def test_another_batch_size_at_another_call_is_no_last_batch(tmp_path: Path, line: int, edit: str) -> None:
    again = FrameStarted(1, 1, (Frame("/project/train.py", line, "<module>"), FORWARD.stack[-1]))
    found = analysed(tmp_path, compiled(1, 0), again, Recompile(1, 1, (f"1/0: {size('x', 256, 100)}",)), compiled(1, 1))
    assert [row.edit.startswith(edit) for row in found.rows] == [True]


@pytest.mark.parametrize(
    ("guard", "cause", "change"),
    [
        (size("x", 2, 3), "size of `x` in dimension 0 changed", "2 → 3"),
        (VALUE, "value of `n` changed", "0 → other"),
        ("GLOBAL_STATE changed: grad_mode", "gradient mode changed (torch.no_grad, inference_mode)", ""),
        ("tensor 'x' dtype mismatch. expected Float, actual Double", "dtype of `x` changed", "Float → Double"),
        ("tensor 'x' rank mismatch. expected 2, actual 1", "number of dimensions of `x` changed", "2 → 1"),
        ("tensor 'x' stride mismatch at index 0. expected 4, actual 1", "strides of `x` changed", "4 → 1"),
        (needs_gradient(0), "whether `x` needs a gradient changed", "no → yes"),
        (needs_gradient(1), "whether `x` needs a gradient changed", "yes → no"),
        (keys("CPU, AutogradCPU", "Meta, AutogradMeta"), "device of `x` changed", ""),
        (keys("CPU, AutogradCPU", "CPU"), "whether autograd sees `x` changed (torch.inference_mode)", ""),
        ("self.mask is None  # if self.mask is None:", "whether `self.mask` is None changed", "None → there"),
        ("GLOBAL_STATE changed: autocast(cpu)_enabled ", "autocast changed", ""),
        ("self._modules['d'].training == True  # x", "training mode changed (Module.train, Module.eval)", ""),
        ("___check_obj_id(x, 7)", "___check_obj_id(x, 7)", ""),
        ("", "unknown cause", ""),
    ],
)
def test_guards_are_put_into_plain_words(guard: str, cause: str, change: str) -> None:
    found = cause_of(guard)
    assert (found.text, found.change) == (cause, change)


def test_a_new_size_is_told_though_the_gradient_that_the_other_version_wants_differs_too(tmp_path: Path) -> None:
    """A discriminator sees real, detached and generated batches; then comes the last, smaller batch."""
    found = analysed(
        tmp_path,
        Recompile(1, 1, (f"1/0: {needs_gradient(1)}",)),
        Recompile(1, 2, (f"1/1: {needs_gradient(0)}", f"1/0: {size('x', 32, 12)}")),
        Recompile(1, 3, (f"1/2: {needs_gradient(1)}", f"1/1: {size('x', 32, 12)}", f"1/0: {needs_gradient(1)}")),
    )
    assert {row.cause: row.count for row in found.rows} == {
        "whether `x` needs a gradient changed": 2,
        "size of `x` in dimension 0 changed": 1,
    }
    assert all(row.edit for row in found.rows)


def test_sizes_of_one_tensor_are_one_row(tmp_path: Path) -> None:
    found = analysed(
        tmp_path,
        Recompile(1, 1, (f"1/0: {size('x', 2, 3)}",)),
        Recompile(1, 2, (f"1/1: {size('x', 3, 5)}", f"1/0: {size('x', 2, 5)}")),
    )
    (row,) = found.rows
    assert (row.place, row.count, row.changes) == (Place("model.py", 4, "forward"), 2, ("2 → 3", "3 → 5"))


def test_a_guard_with_a_stack_is_placed_at_its_line(tmp_path: Path) -> None:
    (row,) = analysed(tmp_path, Recompile(1, 1, (f"1/0: {VALUE}",))).rows
    assert row.place == Place("model.py", 6, "forward")


def test_a_size_that_has_a_version_is_not_the_cause(tmp_path: Path) -> None:
    found = analysed(
        tmp_path,
        Recompile(1, 1, (f"1/0: {size('x', 4, 3)}",)),
        Recompile(1, 2, (f"1/1: {size('x', 3, 4)}", f"1/0: {VALUE}")),
    )
    assert {row.cause: row.count for row in found.rows} == {
        "size of `x` in dimension 0 changed": 1,
        "value of `n` changed": 1,
    }


def test_the_wrapper_around_a_model_is_placed_at_the_call_and_its_arguments_named(tmp_path: Path) -> None:
    root = Root("Model", CALL, ("x", "scale"))
    records = (root, Recompile(0, 1, (f"0/0: {size('args[1]', 2, 3)}",)), compiled(0, 1))
    (row,) = analysed(tmp_path, *records).rows
    assert (row.place, row.cause) == (Place("train.py", 9, "<module>"), "size of `scale` in dimension 0 changed")


def test_a_wrapper_that_holds_no_graph_is_left_out(tmp_path: Path) -> None:
    records = (Recompile(0, 1, (f"0/0: {size('args[0]', 2, 3)}",)), compiled(0, 1, operations=0))
    assert analysed(tmp_path, *records).rows == ()


def test_the_limit_is_named(tmp_path: Path) -> None:
    (limit,) = analysed(tmp_path, compiled(1, 8, failure="Unsupported")).limits
    assert (limit.place, limit.reason) == (Place("model.py", 4, "forward"), "recompile_limit hit")


def test_the_new_value_is_that_with_which_a_later_version_was_compiled(tmp_path: Path) -> None:
    found = analysed(
        tmp_path,
        Recompile(1, 1, ("1/0: n == 0",)),
        compiled(1, 1),
        Recompile(1, 2, ("1/1: n == 4", "1/0: n == 0")),
        compiled(1, 2),
    )
    (row,) = found.rows
    assert row.changes == ("0 → 4", "4 → other")
    assert row.seconds == Figure(0.2, "s", Basis.EMULATED)
    assert "torch.tensor" in row.edit


def test_lengths_that_vary_get_buckets(tmp_path: Path) -> None:
    guard = "tensor 'x' size mismatch at index 1. expected {}, actual {}"
    lengths = (100, 101, 104, 200, 203)
    records = [
        Recompile(1, version, (f"1/{version - 1}: {guard.format(old, new)}",))
        for version, (old, new) in enumerate(pairwise(lengths), 1)
    ]
    (row,) = analysed(tmp_path, *records).rows
    assert row.rule == "dynamic-shape"
    assert row.buckets is not None
    assert (row.buckets.sizes, row.buckets.saved) == ((104, 208), 3)
    assert row.buckets.padding == pytest.approx(1 - sum(lengths) / (3 * 104 + 2 * 208))
