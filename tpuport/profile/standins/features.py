"""Features other than operations: host memory, copies, memory statistics, attention kernels."""

import functools
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.nn.attention import SDPBackend

from tpuport.profile.pinned import lend_host_memory
from tpuport.profile.pjrt import PluginTable
from tpuport.profile.standins.operation import Report

_MEMORY = 32 * 2**30
"""Bytes of HBM of the chip that the emulation calls itself, a v6e."""
_STATISTICS = (
    "memory_allocated",
    "max_memory_allocated",
    "memory_reserved",
    "max_memory_reserved",
    "memory_stats",
)


def install(used: Report, table: PluginTable) -> None:
    """Put the features into place; `used` is told at every use."""
    lend_host_memory(table, lambda: used("pinned memory", "ordinary host memory"))
    _copy_synchronously(used)
    _tell_of_memory_statistics(used)
    _use_math_attention(used)


def _copy_synchronously(used: Report) -> None:
    """Copies to the host without pinned memory can only be synchronous.

    Not done on the dispatch key: calling the kernel from Python there holds the interpreter's lock while the runtime
    compiles on another thread, which needs it.
    """

    def tell() -> None:
        used("non_blocking copies from the device", "synchronous copies")

    to, copy = torch.Tensor.to, torch.Tensor.copy_

    @functools.wraps(to)
    def synchronous_to(self: torch.Tensor, *arguments: Any, **keywords: Any) -> torch.Tensor:
        if self.device.type != "tpu":
            return to(self, *arguments, **keywords)
        if keywords.get("non_blocking"):
            keywords["non_blocking"] = False
            tell()
        # By position, the first of the two flags is non_blocking, and the second one copy.
        flag = next((place for place, value in enumerate(arguments) if isinstance(value, bool)), None)
        if flag is not None and arguments[flag]:
            arguments = (*arguments[:flag], False, *arguments[flag + 1 :])
            tell()
        return to(self, *arguments, **keywords)

    @functools.wraps(copy)
    def synchronous_copy(self: torch.Tensor, source: Any, non_blocking: bool = False) -> torch.Tensor:
        if non_blocking and self.device.type == "cpu" and source.device.type == "tpu":
            non_blocking = False
            tell()
        return copy(self, source, non_blocking)

    torch.Tensor.to, torch.Tensor.copy_ = synchronous_to, synchronous_copy


def _tell_of_memory_statistics(used: Report) -> None:
    def told(read: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(read)
        def run(*arguments: Any, **keywords: Any) -> Any:
            used("memory statistics", "zeros, and a v6e with all its memory free")
            return read(*arguments, **keywords)

        return run

    for name in _STATISTICS:
        setattr(torch.accelerator, name, told(getattr(torch.accelerator, name)))
    if hasattr(torch.accelerator, "get_memory_info"):
        torch.accelerator.get_memory_info = told(lambda _device=None: (_MEMORY, _MEMORY))


def _use_math_attention(used: Report) -> None:
    """Attention lowers to a kernel for TPUs only; with the fused kernels off it takes the math path."""
    cuda: Any = torch.backends.cuda
    switches = [cuda.enable_flash_sdp, cuda.enable_mem_efficient_sdp]
    for switch in switches:
        switch(False)

    def stays_off(enabled: bool) -> None:
        if enabled:
            used("flash attention", "the math path")

    cuda.enable_flash_sdp = cuda.enable_mem_efficient_sdp = stays_off
    attention: Any = torch.nn.attention
    choose = attention._sdpa_kernel

    @functools.wraps(choose)
    def choose_math(backends: Iterable[Any], set_priority: bool = False) -> None:
        wanted = list(backends)
        if any(backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION) for backend in wanted):
            used("flash attention", "the math path")
            wanted = [SDPBackend.MATH]
        choose(wanted, set_priority)

    attention._sdpa_kernel = choose_math
