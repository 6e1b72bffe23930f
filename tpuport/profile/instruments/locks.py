"""Calls of torch that wait for the device with the interpreter's lock held.

The runtime compiles on threads of its own, and `programs` watches that in Python: such a thread then waits for the
lock, and the call for the thread, for ever. Waiting for the device first, which gives the lock up, leaves them nothing
to wait for. The usual calls that wait (item, cpu, tolist, bool, synchronize and the like) give the lock up themselves.
Where torch's own C++ turns a tensor into a number, as for an index (`x[i]`) or a size (`torch.full((2,), x)`), nothing
does: the operation that reads it copies it to the host first, whoever asks for it.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.library import Library

_HOLDING = ("copy_", "_write_file", "__getitem__")
_READS_NUMBER = "_local_scalar_dense"
_KEY = "PrivateUse1"


def wait_before_holding_the_lock() -> Library:
    """Make the calls concerned, which read a storage or a number, wait for the device first.

    For numbers this lasts as long as the library that is returned.
    """
    for name in _HOLDING:
        setattr(torch.UntypedStorage, name, _waiting(getattr(torch.UntypedStorage, name)))
    library = Library("aten", "IMPL")
    library.impl(_READS_NUMBER, torch.compiler.disable(_read), _KEY)
    return library


def _read(tensor: torch.Tensor) -> Any:
    # The same execution and the same transfer, but without the lock.
    return torch._C.TensorBase.cpu(tensor).item()


def _waiting(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def waiting(storage: torch.UntypedStorage, *arguments: Any, **keywords: Any) -> Any:
        storages = (item for item in (storage, *arguments) if isinstance(item, torch.UntypedStorage))
        if any(item.device.type == "tpu" for item in storages):
            torch.accelerator.synchronize()
        return call(storage, *arguments, **keywords)

    return waiting
