"""The parts of a training step, told by the Python stack of an operation."""

from collections.abc import Sequence
from enum import StrEnum

BACKWARD_FILE = "tpuport:backward"
"""File of the frame that stands for autograd's engine, where tpuport runs an operation for it."""
_UPDATE = ("/torch/optim/", "/torch/nn/utils/clip_grad.py", "/torch/amp/grad_scaler.py")
"""Files of torch that work on gradients once they are there."""
_BACKWARD = frozenset({"backward", "apply_boxed", "_make_grads", "grad", "_engine_run_backward"})
"""Functions of torch.autograd that only a backward pass goes through; a compiled graph's is compiled in it."""


class StepPhase(StrEnum):
    """The part of a training step that an operation belongs to."""

    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"


def phase_of(stack: Sequence[tuple[str, str]]) -> StepPhase:
    """Return the part in which an operation ran, or was compiled for.

    `stack` gives (file, function), outermost first.
    """
    if any(part in file for file, _ in stack for part in _UPDATE):
        return StepPhase.OPTIMIZER
    if any(file == BACKWARD_FILE or ("/torch/autograd/" in file and name in _BACKWARD) for file, name in stack):
        return StepPhase.BACKWARD
    # A user's autograd.Function: autograd's own thread begins there, while its forward is called from the script.
    return StepPhase.BACKWARD if stack and "/torch/autograd/" in stack[0][0] else StepPhase.FORWARD
