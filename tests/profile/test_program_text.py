"""Programs in MLIR's text, of the form that torch_tpu 0.2.0 prints."""

import pytest

from tpuport.profile.chips.estimates import SourceFrame
from tpuport.profile.contents import Located
from tpuport.profile.program_text import read_program

ADD = """\
#loc = loc(unknown)
module @tt_jit_add {
  vhlo.func_v1 @main(%arg0: !vhlo.tensor_v1<32x64x!vhlo.f32_v1> loc(unknown), %arg1: !vhlo.tensor_v1<!vhlo.bf16_v1> \
loc(unknown)) -> (!vhlo.tensor_v1<32x64x!vhlo.f32_v1>) {
    %0 = "vhlo.add_v1"(%arg0, %arg1) : (!vhlo.tensor_v1<32x64x!vhlo.f32_v1>) -> () loc(#loc8)
    %1 = "vhlo.multiply_v1"(%0, %0) : (!vhlo.tensor_v1<32x64x!vhlo.f32_v1>) -> () loc(#loc8)
    %2 = "vhlo.tanh_v1"(%1) : (!vhlo.tensor_v1<32x64x!vhlo.f32_v1>) -> () loc("tanh_backward/tanh")
    "vhlo.return_v1"(%2) : (!vhlo.tensor_v1<32x64x!vhlo.f32_v1>) -> () loc(#loc)
  } {arg_attrs = #vhlo.array_v1<[DONORS]>, res_attrs = #vhlo.array_v1<[]>} loc(#loc)
} loc(#loc)
#loc1 = loc("/p/model.py":11:0)
#loc2 = loc("tpuport:module":1:0)
#loc3 = loc("/p/train.py":9:0)
#loc4 = loc("forward"(#loc1))
#loc5 = loc("Net|h.0"(#loc2))
#loc6 = loc("module"(#loc3))
#loc7 = loc(callsite(#loc5 at #loc6))
#loc8 = loc("add/add"(#loc9))
#loc9 = loc(callsite(#loc4 at #loc7))
"""
KEPT, GIVEN = "#vhlo.dict_v1<{}>", '#vhlo.dict_v1<{#vhlo.string_v1<"jax.buffer_donor"> = #vhlo.bool_v1<true>}>'
TENSOR = 32 * 64 * 4


def test_operations_have_their_stacks_and_count_once_a_place() -> None:
    found = read_program(ADD)
    assert found.operations == (Located(3, "add"), Located(0, "tanh_backward"))
    assert found.frames == (
        SourceFrame("/p/train.py", 9, "module", 0),
        SourceFrame("tpuport:module", 1, "Net|h.0", 1),
        SourceFrame("/p/model.py", 11, "forward", 2),
    )


def test_a_graph_nodes_line_is_one_too_high() -> None:
    text = ADD.replace('"tpuport:module":1', '"/x/torch_tpu/_internal/export/export.py":207').replace(
        "Net|h.0", "run_node"
    )
    assert [frame.line for frame in read_program(text).frames] == [9, 207, 10]


@pytest.mark.parametrize(
    ("donors", "aliases"),
    [("", 0), (f"{GIVEN}, {KEPT}", TENSOR), (f"{KEPT}, {GIVEN}", 0), (f"{GIVEN}, {GIVEN}", TENSOR)],
)
def test_the_boundary_counts_what_lies_in_an_argument_once(donors: str, aliases: int) -> None:
    found = read_program(ADD.replace("DONORS", donors))
    assert (found.arguments, found.outputs, found.aliases) == (TENSOR + 2, TENSOR, aliases)
    assert found.boundary == 2 * TENSOR + 2 - aliases


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        ("!vhlo.tensor_v1<4x!vhlo.bool_v1>", 4),
        ("!vhlo.tensor_v1<4x!vhlo.i64_v1>", 32),
        ("!vhlo.tensor_v1<4x!vhlo.f8E4M3FN_v1>", 4),
        ("!vhlo.tensor_v1<4x!vhlo.complex_v1<!vhlo.f32_v1>>", 32),
        ("!vhlo.tensor_v1<0x4x!vhlo.f32_v1>", 0),
    ],
)
def test_tensors_have_the_size_of_their_type(kind: str, size: int) -> None:
    assert read_program(f"  vhlo.func_v1 @main(%arg0: {kind}) -> () {{\n").arguments == size


def test_what_has_no_main_function_is_refused() -> None:
    with pytest.raises(ValueError, match="no main function"):
        read_program("module {}")
