"""Which operations of a step run on the CPU although they are part of the device's work."""

from typing import Any

import torch
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakTensorKeyDictionary

from tpuport.profile.records import CpuReason

_HOST = "cpu"
_TRANSFERS = frozenset({"_to_copy", "copy_", "_copy_from", "_local_scalar_dense", "_pin_memory"})
"""They move data between the host and the device, and compute nothing."""
_ALLOCATIONS = ("empty", "new_empty")
"""How names begin of operations that only take memory."""


class OnCpu:
    """Follows the values that come from the device through the operations of a step."""

    def __init__(self) -> None:
        self._from_device: Any = WeakTensorKeyDictionary()

    def reason(self, func: Any, inputs: Any, result: Any, in_model: bool) -> CpuReason | None:
        """Return why an operation that has run has to be told, if so."""
        given = [leaf for leaf in tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]
        made = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        on_host = all(tensor.device.type == _HOST for tensor in (*given, *made))
        name = func.overloadpacket.__name__
        came = any(tensor.device.type != _HOST or tensor in self._from_device for tensor in given)
        if came:
            for tensor in made:
                if tensor.device.type == _HOST:
                    self._from_device[tensor] = None
        if not made or name in _TRANSFERS or name.startswith(_ALLOCATIONS) or all(_aliases(func)):
            return None
        if not on_host:
            return None
        if came:
            return CpuReason.FROM_DEVICE
        return CpuReason.IN_MODEL if in_model else None


def _aliases(func: Any) -> list[bool]:
    """Return for every result of an operation whether it is a view of an argument, which nothing is computed for."""
    return [item.alias_info is not None and not item.alias_info.is_write for item in func._schema.returns]
