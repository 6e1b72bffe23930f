"""What the TPU compiler says of one program on one chip; it is kept as JSON."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceFrame:
    """One entry of a program's table of stack frames."""

    file: str
    line: int
    function: str
    parent: int
    """The entry of the caller, counted from 1; 0 is none."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Estimated cycles of one run that come from one place."""

    frame: int
    """Entry in the table of frames, counted from 1; 0 where the compiler knows no source."""
    operation: str
    """Name of the torch operation, empty for what the compiler itself added."""
    cycles: float


@dataclass(frozen=True, slots=True)
class Kernels:
    """The optimised program: what the device would run, one kernel after the other."""

    kernels: int
    fusions: int
    unestimated: tuple[str, ...]
    """Kernels that carry no estimate, by name: hand-written ones, mostly."""
    unknown_loops: int
    """Loops whose length is known only at run time: they are counted with one turn."""
    frames: tuple[SourceFrame, ...]
    costs: tuple[Cost, ...]

    @property
    def cycles(self) -> float:
        """Estimated cycles of one run."""
        return sum(cost.cycles for cost in self.costs)


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that one run of the program uses."""

    arguments: int
    outputs: int
    aliases: int
    """Outputs that lie where an argument lay."""
    temporaries: int
    code: int
    peak: int

    @property
    def boundary(self) -> int:
        """Bytes that cross the program's boundary: read from memory before it, or written for what comes after."""
        return self.arguments + self.outputs - self.aliases


@dataclass(frozen=True, slots=True)
class Compiled:
    """One program on one chip."""

    program: str
    """SHA-256 of the program."""
    chip: str
    compiler: str
    """Version of libtpu."""
    seconds: float
    error: str = ""
    """Why the compiler refused the program; then there is nothing else."""
    flops: float = 0.0
    """Floating-point operations of one run, as the compiler counts them."""
    memory: Memory | None = None
    kernels: Kernels | None = None
