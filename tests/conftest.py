"""For all tests: torch is imported without torch_tpu, which where no TPU is attached looks for one for minutes."""

import os

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
