"""Move CUDA-only PyTorch code to device-agnostic PyTorch that runs on Google TPUs."""

__version__ = "0.1.0"
