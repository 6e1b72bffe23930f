"""The user's source lines inside the programs that torch_tpu makes in eager mode; compiled graphs have them anyway."""

import importlib
from collections.abc import Callable
from typing import Any

from tpuport.profile.contents import Contents
from tpuport.profile.program_text import read_program


def locate_operations() -> Callable[[], None]:
    """Have torch_tpu put the Python stack of every operation into its programs; the result ends that.

    It is part of a program but not of the key under which torch_tpu looks for one that it has compiled before.
    """
    compile_: Any = importlib.import_module("torch_tpu._internal.compile").tpu_torch_compile
    compile_.push_enable_tracebacks(True)
    pop: Callable[[], None] = compile_.pop_enable_tracebacks
    return pop


def read_contents(code: bytes) -> Contents:
    """Read what a program holds that was handed to the device's compiler."""
    compile_: Any = importlib.import_module("torch_tpu._internal.compile").tpu_torch_compile
    return read_program(compile_.serialize_mlir_text(compile_.parse_mlir_text(code), True))
