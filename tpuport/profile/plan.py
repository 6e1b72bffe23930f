"""What to profile, where and how: decided once, before anything runs."""

from dataclasses import dataclass, replace
from enum import StrEnum


class Device(StrEnum):
    """Where the script's accelerator tensors live."""

    TPU = "tpu"
    EMULATED_TPU = "emulated-tpu"
    """The real torch_tpu over XLA's CPU backend: same code path, other hardware."""
    CUDA = "cuda"
    CPU = "cpu"

    @property
    def is_tpu(self) -> bool:
        """Whether torch_tpu drives the device."""
        return self in (Device.TPU, Device.EMULATED_TPU)


class Mode(StrEnum):
    """How the script is executed."""

    EAGER = "eager"
    FUSED = "fused"
    COMPILED = "compiled"
    COMPILED_FUSED = "compiled-fused"
    COMPILED_STEP = "compiled-step"
    """Models, and with them the backward pass, and the optimizer's step; what lies between them stays eager."""

    @property
    def compiles(self) -> bool:
        """Whether models go through torch.compile."""
        return self in (Mode.COMPILED, Mode.COMPILED_FUSED, Mode.COMPILED_STEP)

    @property
    def defers(self) -> bool:
        """Whether eager operations are deferred and fused, which only torch_tpu does."""
        return self in (Mode.FUSED, Mode.COMPILED_FUSED)


class StepSource(StrEnum):
    """What ends a step."""

    AUTO = "auto"
    """The optimizer when the script builds one, else the outermost model call."""
    OPTIMIZER = "optimizer"
    CALL = "call"


def default_modes(device: Device) -> tuple[Mode, ...]:
    """Return the modes measured when none is asked for."""
    if device.is_tpu:
        return (Mode.EAGER, Mode.FUSED, Mode.COMPILED)
    return (Mode.EAGER, Mode.COMPILED)


@dataclass(frozen=True, slots=True)
class Plan:
    """One profiling session.

    `warmup` is the least number of steps before anything is measured; warm-up goes on until a step compiles no new
    program, at most `warmup_limit` steps. Then `counted` steps are counted (executions), then `steps` are timed, then
    `traced` are traced.
    """

    script: str
    """Absolute path."""
    script_as_given: str
    """How the command line names it: a path, which becomes sys.argv[0], or `-m MODULE`."""
    arguments: tuple[str, ...]
    directory: str
    """The working directory, absolute."""
    device: Device
    modes: tuple[Mode, ...]
    steps: int
    warmup: int
    warmup_limit: int
    counted: int
    timeout_s: float
    """Wall-clock limit of each mode, in seconds."""
    seed: int
    step_source: StepSource = StepSource.AUTO
    module: str = ""
    """Name of the module to run as `python -m` does, or empty."""
    checked_steps: int = 0
    """First steps in which tensors are kept to compare them with a run on the CPU in float32."""
    float32: bool = False
    """Whether half precision and autocast are off; in that run only."""
    memory_limit: int | None = None
    """Bytes that each process of the script may allocate; None is no limit."""
    traced: int = 0
    """Steps to trace for TensorBoard, after the timed ones."""
    compile_targets: tuple[str, ...] = ()
    """What to compile in place of the outermost models: classes of modules, functions, attributes."""
    repeat: int = 1
    """Runs of each mode."""
    memory: bool = False
    """Whether to follow what lies on the device beside each program; it slows every step."""
    batch_argument: str = ""
    """The script's own argument that sets its batch size, where the largest one that fits is asked for."""
    ranks: int | None = None
    """Processes of each run, started as torchrun would; None is one process that knows of no ranks."""


def reference_plan(plan: Plan) -> Plan:
    """Return the plan of the run with which `plan`'s modes are compared: the checked steps, on the CPU in float32."""
    return replace(plan, device=Device.CPU, float32=True, modes=(Mode.EAGER,), warmup=0, steps=1, counted=0, traced=0)


@dataclass(frozen=True, slots=True)
class ModePlan:
    """What one child process is told: the plan, its mode, and where its files go."""

    plan: Plan
    mode: Mode
    folder: str
    session: str
    """Folder of the session, for what all its processes share."""
    rank: int = 0

    @property
    def has_peers(self) -> bool:
        """Whether other ranks run beside this one, and would fail if it went."""
        return self.plan.ranks is not None and self.plan.ranks > 1
