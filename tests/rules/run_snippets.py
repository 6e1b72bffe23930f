"""Run snippets of code on one kind of device and write down what each printed or raised.

`python -m tests.rules.run_snippets DEVICE JOBS RESULTS`, with DEVICE `cpu`, `emulated-tpu` or `cuda-stand-in`. JOBS is
a JSON object from a name to code; RESULTS gets one JSON line a snippet, `{name: {"printed": ...}}` or
`{name: {"error": ...}}`, and on the stand-in for CUDA `"effects"`, what was asked of its devices. A snippet that takes
the process with it leaves the line that was written when it began.
"""

import contextlib
import io
import json
import os
import random
import socket
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests import cuda_stand_in
from tests.cuda_stand_in.effects import effects


def one_rank() -> None:
    """The environment of a process group of this process alone."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")


class Bench:
    """The device at hand, and what a snippet finds ready beside what it defines."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        there = torch.accelerator.is_available()
        self.here = torch.accelerator.current_accelerator() if there else torch.device("cpu")
        torch.ones(1, device=self.here)  # a TPU that starts after RANK is set asks for a launcher
        self.environment = dict(os.environ)

    def call(self, build: Callable[[Any], Any]) -> str:
        """Build a compiled model and, where a TPU compiles it, call it."""
        compiled = build(self.torch.nn.Linear(2, 2).to(self.here))
        if self.here.type == "tpu":
            compiled(self.torch.ones(1, 2, device=self.here))
        return "built"

    def arguments(self) -> tuple[Any, ...]:
        """What the samples of the API table take: a tensor, a model, a device index and a stream."""
        there = self.here.type != "cpu"
        stream = self.torch.accelerator.current_stream() if there else None
        return self.torch.ones(2, device=self.here), self.torch.nn.Linear(2, 2).to(self.here), 0, stream

    def summary(self, value: Any) -> str:
        """A value without what differs between devices or runs."""
        if isinstance(value, bool | str | type(None)):
            return repr(value)
        if isinstance(value, dict):
            return "dict"
        if isinstance(value, self.torch.Tensor):
            return f"{value.dtype} {tuple(value.shape)}"
        return getattr(value, "__name__", type(value).__name__)

    def names(self) -> dict[str, Any]:
        return {
            "here": self.here,
            "torch": self.torch,
            "call": self.call,
            "one_rank": one_rank,
            "arguments": self.arguments,
            "summary": self.summary,
        }

    def restore(self) -> None:
        """Undo what a snippet may have set for the whole process."""
        os.environ.clear()
        os.environ.update(self.environment)
        self.torch.set_default_device(None)
        self.torch.set_default_dtype(self.torch.float32)
        self.torch.__future__.set_swap_module_params_on_conversion(self.here.type == "cuda")
        if self.here.type == "cuda":
            self.torch.cuda.set_device(0)
        if self.torch.distributed.is_initialized():
            self.torch.distributed.destroy_process_group()


def run(bench: Bench, code: str) -> dict[str, Any]:
    """What `code` printed and asked of its devices, or the error that ended it."""
    module = types.ModuleType("snippet")
    module.__dict__.update(bench.names())
    printed = io.StringIO()
    effects.clear()
    random.seed(0)
    bench.torch.manual_seed(0)
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "snippet", "exec"), module.__dict__)
        asked = [" ".join(map(str, effect)) for effect in effects]
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a snippet raises is its result
        return {"error": f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"}
    finally:
        bench.restore()
    return {"printed": printed.getvalue(), "effects": asked}


def main(device: str, jobs: Path, results: Path) -> None:
    """Run every job on that kind of device."""
    if device == "emulated-tpu":
        from tpuport.profile import emulator

        table = emulator.load()
    elif device == "cuda-stand-in":
        cuda_stand_in.load()
    import torch

    if device == "emulated-tpu":
        from tpuport.profile import standins

        kept = standins.install(lambda _what, _how: None, table)
        assert kept
    bench = Bench(torch)
    sys.argv = ["snippet"]
    with results.open("w", encoding="utf-8") as file:
        for name, code in json.loads(jobs.read_text(encoding="utf-8")).items():
            for ending in ({"error": "it ended the process"}, run):
                file.write(json.dumps({name: ending if isinstance(ending, dict) else ending(bench, code)}) + "\n")
                file.flush()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
