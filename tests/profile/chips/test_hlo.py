"""Modules made by hand, whose costs are known."""

import pytest

from tests.profile.chips.encoding import Instruction, Module, estimated
from tpuport.profile.chips.estimates import Cost, Kernels
from tpuport.profile.chips.hlo import SCALAR, read
from tpuport.profile.chips.specs import CHIPS

CHIP = CHIPS["v6e"]
EXPORT = "/lib/python3/site-packages/torch_tpu/_internal/export/export.py"


def costs(module: Module) -> tuple[Cost, ...]:
    return read(module.encode(), CHIP).costs


def kernel(cycles: int, frame: int = 0, operation: str = "add", **more: object) -> Instruction:
    return Instruction("add", frame=frame, operation=operation, config=estimated(cycles), **more)  # type: ignore[arg-type]


def test_kernels_of_one_place_add_up() -> None:
    entry = [kernel(100, 1), kernel(20, 1), kernel(3, 1, "mul"), kernel(5, 2)]
    frames = [("a.py", 3, "f", 0), ("a.py", 4, "f", 0)]
    found = read(Module({1: entry}, frames).encode(), CHIP)
    assert found.costs == (Cost(1, "add", 120), Cost(1, "mul", 3), Cost(2, "add", 5))
    assert (found.kernels, found.fusions, found.cycles) == (4, 0, 128)


def test_transfers_and_renamings_are_no_kernels() -> None:
    entry = [
        Instruction("parameter"),
        Instruction("copy-start"),
        Instruction("copy-done"),
        Instruction("bitcast"),
        Instruction("custom-call", target="ConcatBitcast"),
        Instruction("tuple"),
    ]
    assert read(Module({1: entry}).encode(), CHIP) == Kernels(0, 0, (), 0, (), ())


def test_a_kernel_without_an_estimate_is_named() -> None:
    entry = [Instruction("custom-call", target="tpu_custom_call"), Instruction("add", (), operation="div"), kernel(7)]
    found = read(Module({1: entry}).encode(), CHIP)
    assert (found.kernels, found.unestimated, found.cycles) == (3, ("tpu_custom_call", SCALAR), 7)


def test_a_fusion_is_shared_by_the_work_of_each_line() -> None:
    """A matrix product of 256×512 by 512×1024, and three additions of its result, at their full rates."""
    product, addition = 256 * 512 * 1024 / CHIP.cells, 3 * 256 * 1024 / CHIP.vector_rate
    fused = [
        Instruction("parameter", (256, 512)),
        Instruction("parameter", (512, 1024)),
        Instruction("convolution", (256, 1024), 1, "mm", operands=(0, 1), output_features=1),
        Instruction("broadcast", (256, 1024), 2, "add"),
        *(Instruction("add", (256, 1024), 2, "add", operands=(2, 3)) for _ in range(3)),
    ]
    entry = [Instruction("fusion", (256, 1024), 1, "mm", estimated(9000), called=(2,))]
    first, second = costs(Module({1: entry, 2: fused}, [("a.py", 3, "f", 0), ("a.py", 4, "f", 0)]))
    assert first.cycles == pytest.approx(9000 * product / (product + addition))
    assert second.cycles == pytest.approx(9000 * addition / (product + addition))
    assert (first.frame, second.frame) == (1, 2)


def test_what_the_compiler_adds_inside_a_fusion_belongs_to_the_fusion() -> None:
    entry = [Instruction("fusion", frame=1, operation="mm", config=estimated(50), called=(2,))]
    assert costs(Module({1: entry, 2: [Instruction("convert")]}, [("a.py", 3, "f", 0)])) == (Cost(1, "mm", 50),)


def test_a_fusion_inside_a_fusion_is_opened_too() -> None:
    entry = [Instruction("fusion", config=estimated(60), called=(2,))]
    nested = {2: [Instruction("fusion", called=(3,))], 3: [Instruction("add", frame=1, operation="add")]}
    assert costs(Module({1: entry, **nested}, [("a.py", 3, "f", 0)])) == (Cost(1, "add", 60),)


def test_a_loop_of_known_length_counts_with_every_turn() -> None:
    loop = Instruction("while", called=(2,), config='{"known_trip_count":{"n":"12"}}')
    found = read(Module({1: [loop], 2: [kernel(10)]}).encode(), CHIP)
    assert (found.kernels, found.cycles, found.unknown_loops) == (12, 120, 0)


def test_a_loop_of_unknown_length_counts_once_and_is_told() -> None:
    found = read(Module({1: [Instruction("while", called=(2,))], 2: [kernel(10)]}).encode(), CHIP)
    assert (found.kernels, found.cycles, found.unknown_loops) == (1, 10, 1)


def test_a_graph_nodes_line_is_one_too_high_and_only_that() -> None:
    frames = [("train.py", 40, "module", 0), (EXPORT, 207, "run_node", 1), ("model.py", 12, "forward", 2)]
    found = read(Module({1: [kernel(1, 3)]}, frames).encode(), CHIP)
    assert [(frame.file, frame.line) for frame in found.frames] == [("train.py", 40), (EXPORT, 207), ("model.py", 11)]


@pytest.mark.parametrize("content", [b"\x0a", b"\x0a\x05ab", b"\x0b", b"\xff\xff"])
def test_what_is_no_module_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"wire type|after the message|inside a number"):
        read(content, CHIP)
