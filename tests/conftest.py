"""For all tests, and the processes that they start.

torch is imported without torch_tpu, which where no TPU is attached looks for one for minutes. It computes in one
thread: on tensors this small more of them only wait for one another, at three times the cost where cores are busy.
"""

import os

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
os.environ["OMP_NUM_THREADS"] = "1"
