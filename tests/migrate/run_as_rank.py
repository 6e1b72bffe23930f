"""Run a script as one process of a group: `python -m tests.migrate.run_as_rank DEVICE SCRIPT [ARGUMENT...]`.

DEVICE is `cpu` or `emulated-tpu`. RANK in the environment says which process it is; without it, it is the only one.
"""

import os
import runpy
import sys

from tests.rules.run_snippets import one_rank


def main(device: str, script: str, arguments: list[str]) -> None:
    if device == "emulated-tpu":
        from tpuport.profile import emulator

        emulator.load()
    import torch

    # Its functions take the group of all ranks that exists when it is imported as a default, so that
    # destroy_process_group() could not end the group's threads: one that waits for Python at exit aborts the process.
    import torch.distributed.nn.functional

    if device == "emulated-tpu":
        torch.ones(1, device=torch.accelerator.current_accelerator())  # a TPU started after RANK asks for a launcher
    if "RANK" not in os.environ:
        one_rank()
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
