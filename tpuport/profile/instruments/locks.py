"""Calls of torch that wait for the device with the interpreter's lock held.

The runtime compiles on threads of its own, and `programs` watches that in Python: such a thread then waits for the
lock, and the call for the thread, for ever. Waiting for the device first, which gives the lock up, leaves them nothing
to wait for. The usual calls that wait (item, cpu, tolist, bool, synchronize and the like) give the lock up themselves.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch

_HOLDING = ("copy_", "_write_file")


def wait_before_holding_the_lock() -> None:
    """Make the calls concerned, which copy a storage to the host or to a file, wait for the device first."""
    for name in _HOLDING:
        setattr(torch.UntypedStorage, name, _waiting(getattr(torch.UntypedStorage, name)))


def _waiting(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def waiting(storage: torch.UntypedStorage, *arguments: Any, **keywords: Any) -> Any:
        storages = (item for item in (storage, *arguments) if isinstance(item, torch.UntypedStorage))
        if any(item.device.type == "tpu" for item in storages):
            torch.accelerator.synchronize()
        return call(storage, *arguments, **keywords)

    return waiting
