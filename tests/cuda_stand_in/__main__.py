"""Run a script on the stand-in for CUDA: `python -m tests.cuda_stand_in SCRIPT [ARGUMENT...]`."""

import runpy
import sys
from pathlib import Path

from tests import cuda_stand_in

if __name__ == "__main__":
    cuda_stand_in.load()
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
