"""The real torch_tpu `tpu` device on a machine without a TPU.

torch_tpu talks to its hardware through a PJRT plugin whose path it takes from TPU_LIBRARY_PATH. XLA's CPU backend
exists as such a plugin, so torch_tpu runs over it once two differences are bridged: the plugin must be asked for one
device, and torch_tpu looks for a TPU on the PCI bus. What the plugin itself lacks is in `standins`.
"""

import ctypes
import importlib
import os
from pathlib import Path
from typing import Any

from tpuport.profile.pjrt import Address, ClientCreateArgs, Function, NamedValue, PluginTable

CHIP = "TPU v6e"
"""What the emulated device calls itself."""


def load() -> PluginTable:
    """Make `torch.device("tpu")` work over XLA's CPU backend and return the plugin's table.

    Must run before torch_tpu is imported, with TORCH_DEVICE_BACKEND_AUTOLOAD=0 in the environment: otherwise torch_tpu
    looks for a TPU through the network, for minutes.
    """
    from lammps_jax_pjrt_cpu import PLUGIN_PATH

    os.environ["TPU_LIBRARY_PATH"] = str(PLUGIN_PATH)
    table = PluginTable(Path(PLUGIN_PATH))
    table.replace("PJRT_Client_Create", _ask_for_one_device)
    hardware: Any = importlib.import_module("torch_tpu._internal.utils.hardware")
    hardware.get_tpu_device_count = lambda: 1
    hardware.get_tpu_device_name = lambda: CHIP
    hardware._scan_pci_tpus = lambda: (1, hardware._V6E_TOPOLOGY)
    importlib.import_module("torch_tpu._loader")._init_device("tpu")
    return table


def _ask_for_one_device(original: Function) -> Function:
    """Replace torch_tpu's creation options, which the CPU plugin rejects; with several devices results are wrong."""
    name = b"cpu_device_count"
    option = NamedValue(
        struct_size=ctypes.sizeof(NamedValue),
        name=name,
        name_size=len(name),
        type=NamedValue.INT64,
        int64_value=1,
        value_size=1,
    )

    def create(address: Address) -> Address | None:
        arguments = ClientCreateArgs.from_address(address)
        given = arguments.create_options, arguments.num_options
        arguments.create_options, arguments.num_options = ctypes.addressof(option), 1
        try:
            return original(address)
        finally:
            arguments.create_options, arguments.num_options = given

    return create
