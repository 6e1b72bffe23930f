"""The same random numbers in every mode."""

import random
from importlib.util import find_spec

import torch


def seed_everything(seed: int) -> None:
    """Seed Python, torch on all devices, and numpy where it is installed."""
    random.seed(seed)
    torch.manual_seed(seed)
    if find_spec("numpy") is not None:
        import numpy

        numpy.random.seed(seed % 2**32)
