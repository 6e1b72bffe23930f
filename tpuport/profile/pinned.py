"""Pinned host memory on the emulated TPU: XLA's CPU plugin lends none, and ordinary memory does as well there.

Layouts follow XLA's `host_memory_allocator_extension.h`.
"""

import ctypes
from collections.abc import Callable

from tpuport.profile.pjrt import Address, PluginTable

_HOST_MEMORY_ALLOCATOR = 23
_ALIGNMENT = 64


class _AllocateArgs(ctypes.Structure):
    """PJRT_HostMemoryAllocator_Allocate_Args."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("client", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("numa_node", ctypes.c_int),
        ("memory", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("deleter_argument", ctypes.c_void_p),
    )


def lend_host_memory(table: PluginTable, used: Callable[[], None]) -> None:
    """Give the plugin an allocator of host memory; `used` is called whenever something is allocated."""
    libc = ctypes.CDLL(None)
    libc.aligned_alloc.restype = ctypes.c_void_p
    libc.aligned_alloc.argtypes = (ctypes.c_size_t, ctypes.c_size_t)
    free = ctypes.cast(libc.free, ctypes.c_void_p).value

    def allocate(address: Address) -> None:
        arguments = _AllocateArgs.from_address(address)
        arguments.memory = libc.aligned_alloc(_ALIGNMENT, -(-arguments.size // _ALIGNMENT) * _ALIGNMENT)
        # It is called with a second argument, which C's free() does not look at, and without Python's lock.
        arguments.deleter = free
        used()

    table.extend(_HOST_MEMORY_ALLOCATOR, allocate)
