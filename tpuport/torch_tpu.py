"""What torch_tpu asks of an installation, as the metadata of its release says, and how it is installed."""

VERSION = "0.2.0"
TORCH = ">=2.11.0,<=2.15.0"
TORCH_RELEASES = ("2.11", "2.12", "2.13", "2.14", "2.15")
PYTHON_RELEASES = ("3.11", "3.12", "3.13", "3.14")
NUMPY_RELEASES = ("2.0", "2.1", "2.2", "2.3", "2.4")

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
"""Where builds of torch without CUDA are: a TPU needs no more, and PyPI's for Linux bring gigabytes of CUDA."""

REQUIREMENT = f"torch_tpu=={VERSION}"
INSTALL = f"pip install {REQUIREMENT} --extra-index-url {CPU_INDEX}"
