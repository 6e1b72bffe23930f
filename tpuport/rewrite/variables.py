"""What edits may ask to be hoisted, by placeholder: variables, and definitions that stand at module level."""

import re
from dataclasses import dataclass

PLACEHOLDER = re.compile(
    r"\{((?:new )?device\.type|(?:new )?device|autocast_dtype|half_dtype|accelerator_type"
    r"|device_loader|rate_tracker|serial_executor|(?:trainer|fabric)_(?:mixed_)?strategy)\}"
)
DEVICE = 'torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")'
DEVICE_TYPE = 'torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"'
CURRENT = "torch.accelerator.current_accelerator()"
EARLY_DEVICE = 'torch.accelerator.current_accelerator() or torch.device("cpu")'
"""What a device that is only written out becomes where CUDA_VISIBLE_DEVICES may yet be set, or a process forked.

`current_accelerator` alone looks at no device, as the name alone did; `is_available` makes CUDA read the variable.
"""
EARLY_TYPE = f"({EARLY_DEVICE}).type"


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable to hoist: its value, and the names it may take, the first free one first.

    What is no value is a `definition` of `NAME`, which stands at module level.
    """

    value: str
    names: tuple[str, ...]
    definition: str = ""


DEVICE_LOADER = """\
class NAME:
    # The batches of a loader, with their tensors on a device.
    def __init__(self, loader, device):
        self.loader = loader
        self.device = device

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        return map(self.moved, self.loader)

    def moved(self, batch):
        if hasattr(batch, "to"):
            return batch.to(self.device)
        if isinstance(batch, dict):
            return {key: self.moved(value) for key, value in batch.items()}
        if isinstance(batch, tuple) and hasattr(batch, "_fields"):
            return type(batch)(*map(self.moved, batch))
        if isinstance(batch, (list, tuple)):
            return type(batch)(map(self.moved, batch))
        return batch
"""

RATE_TRACKER = """\
class NAME:
    # Counts a second: smoothed since the last look, and over all.
    from time import time as now

    def __init__(self, smooth_factor=0.4):
        self.smooth_factor = smooth_factor
        self.start = self.looked = self.now()
        self.before = self.count = 0.0
        self.last = None

    def add(self, count):
        self.count += count

    def rate(self):
        now = self.now()
        if now <= self.looked:
            return 0.0
        rate = self.count / (now - self.looked)
        if self.last is not None:
            rate = (1 - self.smooth_factor) * rate + self.smooth_factor * self.last
        self.before, self.count, self.looked, self.last = self.before + self.count, 0.0, now, rate
        return rate

    def global_rate(self):
        seconds = self.now() - self.start
        return (self.before + self.count) / seconds if seconds > 0 else 0.0
"""

SERIAL_EXECUTOR = """\
class NAME:
    # Runs a function in one process after the other.
    def run(self, function):
        if not torch.distributed.is_initialized():
            return function()
        result = None
        for rank in range(torch.distributed.get_world_size()):
            if rank == torch.distributed.get_rank():
                result = function()
            torch.distributed.barrier()
        return result
"""

STRATEGY = """\
def NAME():
    # Lightning's own choice; for an accelerator that Lightning has no name for, a strategy of its own.
    if torch.cuda.is_available() or not torch.accelerator.is_available():
        return "auto"
    device = torch.accelerator.current_accelerator()
    if device.type == "mps":
        return "auto"
    from PACKAGE.accelerators import CPUAccelerator
    from PACKAGE.strategies import SingleDeviceStrategy

    class CurrentAccelerator(CPUAccelerator):
        def setup_device(self, device):
            pass

    # Weights that are tied, or in an optimizer already, have to stay the same objects when they move.
    torch.__future__.set_swap_module_params_on_conversion(True)
    return SingleDeviceStrategy(device, accelerator=CurrentAccelerator())
"""


def _mixed(strategy: str, argument: str) -> str:
    """The strategy with mixed precision of its own, which Lightning takes before what `precision=` says."""
    imports = "    from PACKAGE.accelerators import CPUAccelerator\n"
    made = "SingleDeviceStrategy(device, accelerator=CurrentAccelerator())\n"
    plugin = "    # Before `precision=`, by which Lightning has autocast for CUDA: TPUs compute in bfloat16.\n"
    plugin += '    plugin = MixedPrecision("bf16-mixed", device.type)\n'
    strategy = strategy.replace(imports, f"{imports}    from PACKAGE.plugins.precision import MixedPrecision\n")
    head, _, _ = strategy.partition(f"    return {made}")
    return f"{head}{plugin}    return {made.replace('())', f'(), {argument}=plugin)')}"


VARIABLES = {
    "device": Variable(DEVICE, ("device", "default_device", "accelerator_device", "tpuport_device")),
    "autocast_dtype": Variable(
        "None if torch.cuda.is_available() else torch.bfloat16",  # None: whatever CUDA's default is at that point
        ("autocast_dtype", "amp_dtype", "tpuport_autocast_dtype"),
    ),
    "half_dtype": Variable(
        "torch.float16 if torch.cuda.is_available() else torch.bfloat16",
        ("half_dtype", "accelerator_half_dtype", "tpuport_half_dtype"),
    ),
    "accelerator_type": Variable(
        'torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cuda"',
        ("accelerator_type", "current_accelerator_type", "tpuport_accelerator_type"),
    ),
    "device_loader": Variable("", ("DeviceLoader", "AcceleratorLoader", "TpuportDeviceLoader"), DEVICE_LOADER),
    "rate_tracker": Variable("", ("RateTracker", "CountRate", "TpuportRateTracker"), RATE_TRACKER),
    "serial_executor": Variable("", ("SerialExecutor", "OneAfterAnother", "TpuportSerialExecutor"), SERIAL_EXECUTOR),
    "trainer_strategy": Variable(
        "",
        ("trainer_strategy", "accelerator_strategy", "tpuport_trainer_strategy"),
        STRATEGY.replace("PACKAGE", "lightning.pytorch"),
    ),
    "fabric_strategy": Variable(
        "",
        ("fabric_strategy", "accelerator_fabric_strategy", "tpuport_fabric_strategy"),
        STRATEGY.replace("PACKAGE", "lightning.fabric"),
    ),
    "trainer_mixed_strategy": Variable(
        "",
        ("trainer_mixed_strategy", "accelerator_mixed_strategy", "tpuport_trainer_mixed_strategy"),
        _mixed(STRATEGY, "precision_plugin").replace("PACKAGE", "lightning.pytorch"),
    ),
    "fabric_mixed_strategy": Variable(
        "",
        ("fabric_mixed_strategy", "accelerator_fabric_mixed_strategy", "tpuport_fabric_mixed_strategy"),
        _mixed(STRATEGY, "precision").replace("PACKAGE", "lightning.fabric"),
    ),
}
