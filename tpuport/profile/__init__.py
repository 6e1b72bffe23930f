"""Profiling: plan → one subprocess a mode → records on disk → session → analyses.

Only `child` and what it imports (`instruments`, `emulator`, `standins`) import torch.
"""
