"""Cost estimates in an optimised HLO module, by the place in the source they come from.

Field numbers are those of XLA's `hlo.proto` and `xla_data.proto`, which never change. The TPU compiler writes its
estimate for a kernel, `estimated_cycles`, into the kernel's `backend_config`.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tpuport.profile.chips.estimates import Cost, Kernels, SourceFrame
from tpuport.profile.chips.specs import Chip
from tpuport.profile.chips.wire import Message

_NO_KERNEL = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id"})
_NO_KERNEL_TARGETS = frozenset({"ConcatBitcast"})
"""Custom calls that only rename memory."""
_ASYNC = ("-start", "-done", "-update")
"""Transfers that run beside the kernels."""
_NO_WORK = _NO_KERNEL | {"broadcast", "iota", "reshape"}
"""Inside a fusion these cost nothing of their own."""
SCALAR = "arithmetic on single numbers"
"""What kernels without an estimate are called that yield one number: they cost next to nothing."""
_CYCLES = re.compile(r'"estimated_cycles":"?(\d+)')
_TRIPS = re.compile(r'"known_trip_count":\{"n":"?(\d+)')
_RENAMED_BY = ("torch_tpu/_internal/export/export.py", "run_node")
"""The function below which torch_tpu shows a graph node's position as a frame: see `source_line`."""


@dataclass(frozen=True, slots=True)
class _Instruction:
    name: str
    opcode: str
    elements: int
    """Elements of its result; of all results, for a tuple."""
    frame: int
    operation: str
    config: str
    target: str
    operands: tuple[int, ...]
    called: tuple[int, ...]
    output_features: int
    """Convolutions: the dimension of the kernel that becomes output features."""
    contracting: tuple[int, ...]
    """Dot products: the dimensions of the first operand that are summed over."""
    dimensions: tuple[int, ...]


_Computations = dict[int, dict[int, _Instruction]]


def read(module: bytes, chip: Chip) -> Kernels:
    """Read the estimates that the compiler made for `chip` out of a serialised HloModuleProto.

    Raises ValueError when it is none.
    """
    message = Message(module)
    computations: _Computations = {}
    for computation in message.messages(3):
        instructions = (_instruction(item) for item in computation.messages(2))
        computations[computation.number(5)] = dict(instructions)
    reader = _Reader(computations, chip)
    reader.walk(message.number(6), 1)
    return Kernels(
        kernels=reader.kernels,
        fusions=reader.fusions,
        unestimated=tuple(reader.unestimated),
        unknown_loops=reader.unknown_loops,
        frames=_frames(message.message(17)),
        costs=tuple(Cost(frame, operation, cycles) for (frame, operation), cycles in sorted(reader.costs.items())),
    )


def _instruction(message: Message) -> tuple[int, _Instruction]:
    shape, metadata = message.message(3), message.message(7)
    parts = shape.messages(4) or [shape]
    return message.number(35), _Instruction(
        name=message.text(1),
        opcode=message.text(2),
        elements=sum(math.prod(part.numbers(3)) for part in parts),
        frame=metadata.number(15),
        operation=metadata.text(2).partition("/")[0],
        config=message.text(43),
        target=message.text(28),
        operands=tuple(message.numbers(36)),
        called=tuple(message.numbers(38)),
        output_features=message.message(16).number(4),
        contracting=tuple(message.message(30).numbers(1)),
        dimensions=tuple(shape.numbers(3)),
    )


class _Reader:
    def __init__(self, computations: _Computations, chip: Chip) -> None:
        self._computations = computations
        self._chip = chip
        self.kernels = 0
        self.fusions = 0
        self.unknown_loops = 0
        self.unestimated: list[str] = []
        self.costs: defaultdict[tuple[int, str], float] = defaultdict(float)

    def walk(self, computation: int, times: int) -> None:
        """Add the kernels of a computation that runs `times` times."""
        for instruction in self._computations.get(computation, {}).values():
            self._add(instruction, times)

    def _add(self, instruction: _Instruction, times: int) -> None:
        opcode = instruction.opcode
        if opcode in _NO_KERNEL or opcode.endswith(_ASYNC) or instruction.target in _NO_KERNEL_TARGETS:
            return
        if opcode in ("while", "call", "conditional"):
            turns = self._turns(instruction) if opcode == "while" else 1
            for called in instruction.called:
                self.walk(called, times * turns)
            return
        self.kernels += times
        self.fusions += times * (opcode == "fusion")
        match = _CYCLES.search(instruction.config)
        if match is None:
            named = instruction.target or instruction.operation or opcode
            self.unestimated.append(named if instruction.elements > 1 else SCALAR)
            return
        shares = self._shares(instruction)
        total = sum(shares.values())
        for place, share in shares.items():
            self.costs[place] += times * int(match[1]) * share / total

    def _turns(self, loop: _Instruction) -> int:
        match = _TRIPS.search(loop.config)
        if match is None:
            self.unknown_loops += 1
            return 1
        return int(match[1])

    def _shares(self, kernel: _Instruction) -> dict[tuple[int, str], float]:
        """Share a kernel among the places that were fused into it, by the cycles that each would take alone."""
        own = kernel.frame, kernel.operation
        shares: defaultdict[tuple[int, str], float] = defaultdict(float)
        if kernel.opcode == "fusion":
            for computation, item in self._fused(kernel):
                # What carries no source was made by the compiler on the way: it belongs to the kernel's own place.
                place = (item.frame, item.operation) if item.frame or item.operation else own
                shares[place] += _work(item, computation, self._chip)
        if not any(shares.values()):
            shares[own] = 1
        return shares

    def _fused(self, fusion: _Instruction) -> Iterator[tuple[dict[int, _Instruction], _Instruction]]:
        for called in fusion.called:
            computation = self._computations.get(called, {})
            for item in computation.values():
                if item.opcode == "fusion":
                    yield from self._fused(item)
                else:
                    yield computation, item


def _work(item: _Instruction, computation: dict[int, _Instruction], chip: Chip) -> float:
    """Return the cycles that an instruction inside a fusion takes at the chip's full rate."""
    if item.opcode in _NO_WORK:
        return 0
    operands = [computation[operand] for operand in item.operands if operand in computation]
    if item.opcode == "convolution" and len(operands) == 2 and operands[1].dimensions:
        kernel = operands[1]
        return item.elements * kernel.elements / max(1, kernel.dimensions[item.output_features]) / chip.cells
    if item.opcode == "dot" and operands:
        return item.elements * math.prod(operands[0].dimensions[index] for index in item.contracting) / chip.cells
    if item.opcode == "reduce" and operands:
        return operands[0].elements / chip.vector_rate
    return item.elements / chip.vector_rate


def _frames(index: Message) -> tuple[SourceFrame, ...]:
    """Read the module's table of stack frames."""
    files, functions = index.texts(1), index.texts(2)
    locations = index.messages(3)
    frames: list[SourceFrame] = []
    for frame in index.messages(4):
        location = locations[frame.number(1) - 1]
        parent = frame.number(2)
        line = source_line(location.number(3), frames[parent - 1] if parent else None)
        file, function = files[location.number(1) - 1], functions[location.number(2) - 1]
        frames.append(SourceFrame(file, line, function, parent))
    return tuple(frames)


def source_line(line: int, caller: SourceFrame | None) -> int:
    """Return the line that a frame's recorded `line` stands for.

    In compiled graphs torch_tpu 0.2.0 gives a function of its own the name, file and first line of the node that is
    being exported; the statement that shows up in the stack is that function's second line, so the line is one too
    high. Only frames called from there are concerned; all others are real.
    """
    return line - 1 if caller is not None and runs_graph_node(caller) else line


def runs_graph_node(frame: SourceFrame) -> bool:
    """Whether this is torch_tpu at work on a node of a compiled graph: what it calls is the node's own position."""
    file, function = _RENAMED_BY
    return frame.file.endswith(file) and frame.function == function
