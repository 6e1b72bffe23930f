"""The functions in C that torch.cuda and torch.accelerator stand on."""

import importlib
import os
import sys
from typing import Any

import torch
import torch._inductor.utils  # now, as it looks for more functions of a torch with CUDA than are here
import torch.distributed.nn.functional
from torch.distributed import distributed_c10d
from torch.testing._internal.distributed import fake_pg

from tests.cuda_stand_in.effects import doing, told

C: Any = torch._C
GIB = 2**30


def devices() -> int:
    """How many there are: two, or as many as CUDA_VISIBLE_DEVICES names."""
    return len(os.environ.get("CUDA_VISIBLE_DEVICES", "0,1").split(","))


class Properties:
    """What `torch.cuda.get_device_properties` returns."""

    name, total_memory, gcnArchName = "stand-in for CUDA", 64 * GIB, ""
    major, minor, multi_processor_count, warp_size = 9, 0, 132, 32


class Runtime:
    """What `torch.cuda.cudart` returns."""

    class cudaError:
        success = 0

    cudaMemGetInfo = staticmethod(doing("memory information", (32 * GIB, 64 * GIB)))
    cudaProfilerStart = staticmethod(doing("profiler start", 0))
    cudaProfilerStop = staticmethod(doing("profiler stop", 0))


def memory() -> dict[str, Any]:
    """The statistics of an allocator that was asked for nothing, as torch.cuda has them."""
    sized = ("allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes", "requested_bytes")
    counted = ("allocation", "segment", "active", "inactive_split")
    counts = {"current": 0, "peak": 0, "allocated": 0, "freed": 0}
    pools = dict.fromkeys(("all", "small_pool", "large_pool"), counts)
    singles = dict.fromkeys(("num_alloc_retries", "num_ooms", "num_sync_all_streams", "max_split_size"), 0)
    return {
        **dict.fromkeys((*sized, *counted), pools),
        "oversize_allocations": counts,
        "oversize_segments": counts,
        **singles,
    }


def flat(nested: dict[str, Any], before: str = "") -> dict[str, int]:
    """The same statistics as torch.accelerator has them."""
    found: dict[str, int] = {}
    for key, value in nested.items():
        found |= flat(value, f"{before}{key}.") if isinstance(value, dict) else {before + key: value}
    return found


class Nvtx:
    """What torch.cuda.nvtx calls."""

    rangePushA = staticmethod(doing("range push", 0))
    rangePop = staticmethod(doing("range pop", 0))
    rangeStartA = staticmethod(doing("range start", 0))
    rangeEnd = staticmethod(doing("range end"))
    markA = staticmethod(doing("mark"))


class StreamBase(torch.Stream):
    def __new__(cls, priority: int = 0, **ids: Any) -> Any:
        return super().__new__(cls, **(ids if "stream_id" in ids else {"device": "cuda", "priority": priority}))

    @property
    def cuda_stream(self) -> int:
        return int(self.stream_id)


class EventBase(torch.Event):
    def __new__(cls, enable_timing: bool = False, **_: Any) -> Any:
        return super().__new__(cls, device="cuda", enable_timing=enable_timing)

    def elapsed_time(self, _: Any) -> float:
        return 1.0


class Fakes(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, fake_pg.FakeProcessGroup)


class ProcessGroupNCCL(metaclass=Fakes):
    """NCCL for one process: every collective leaves its tensors as they are."""

    class Options:
        class _Config:
            pass

        def __init__(self, **_: Any) -> None:
            self.config = self._Config()

    def __new__(cls, _store: Any, rank: int, size: int, *_options: Any) -> Any:
        assert size == 1, "the stand-in for CUDA has NCCL for one process"
        return fake_pg.FakeProcessGroup._create_internal(rank, size, fake_pg.FakeProcessGroup.Options())


def install() -> None:
    get, set_index, exchange = (
        C._accelerator_getDeviceIndex,
        C._accelerator_setDeviceIndex,
        C._accelerator_exchangeDevice,
    )
    get_stream, set_stream = C._accelerator_getStream, C._accelerator_setStream

    def set_device(index: int) -> None:
        told("device", index)
        set_index(index)

    def exchange_device(index: int) -> int:
        before: int = exchange(index)
        if index not in (-1, before):
            told("device", index)
        return before

    def synchronize(index: int = -1) -> None:
        told("synchronize", get() if index < 0 else index)

    def ids(index: int) -> tuple[int, int, int]:
        stream = get_stream(index)
        return stream.stream_id, stream.device_index, stream.device_type

    def change_stream(stream: Any) -> None:
        told("stream", stream.stream_id)
        set_stream(stream)

    stands_in = {
        "_accelerator_emptyCache": doing("empty cache"),
        "_accelerator_exchangeDevice": exchange_device,
        "_accelerator_getDeviceStats": doing("memory statistics", flat(memory())),
        "_accelerator_getMemoryInfo": Runtime.cudaMemGetInfo,
        "_accelerator_isAllocatorInitialized": lambda: True,
        "_accelerator_maybeExchangeDevice": exchange_device,
        "_accelerator_resetAccumulatedStats": doing("reset accumulated statistics"),
        "_accelerator_resetPeakStats": doing("reset peak statistics"),
        "_accelerator_setDeviceIndex": set_device,
        "_accelerator_setStream": change_stream,
        "_accelerator_synchronizeDevice": synchronize,
        "_cuda_canDeviceAccessPeer": lambda *_: True,
        "_cuda_emptyCache": doing("empty cache"),
        "_cuda_getArchFlags": lambda: "sm_90",
        "_cuda_getCompiledVersion": lambda: 13000,
        "_cuda_getCurrentStream": ids,
        "_cuda_getDefaultStream": lambda index: (0, index, int(C._autograd.DeviceType.CUDA)),
        "_cuda_getDevice": get,
        "_cuda_getDeviceCount": devices,
        "_cuda_get_sync_debug_mode": lambda: 0,
        "_cuda_init": lambda: None,
        "_cuda_ipc_collect": doing("collect"),
        "_cuda_isCurrentStreamCapturing": lambda: False,
        "_cuda_isInBadFork": lambda: False,
        "_cuda_memorySnapshot": lambda *_: {"segments": [], "device_traces": []},
        "_cuda_memoryStats": doing("memory statistics", memory()),
        "_cuda_resetAccumulatedMemoryStats": doing("reset accumulated statistics"),
        "_cuda_resetAccumulatedHostMemoryStats": doing("reset accumulated host statistics"),
        "_cuda_resetPeakHostMemoryStats": doing("reset peak host statistics"),
        "_cuda_resetPeakMemoryStats": doing("reset peak statistics"),
        "_cuda_setDevice": set_device,
        "_cuda_setMemoryFraction": doing("memory fraction"),
        "_cuda_setStream": lambda **ids: change_stream(torch.Stream(**ids)),
        "_cuda_set_sync_debug_mode": doing("synchronization debug mode"),
        "_cuda_synchronize": synchronize,
        "_CudaEventBase": EventBase,
        "_CudaStreamBase": StreamBase,
        "_cudart": Runtime,
        "_has_cuda": True,
    }
    for name, value in stands_in.items():
        setattr(C, name, value)
    C._set_only_lift_cpu_tensors(True)  # torch.tensor() makes its tensor on the CPU, and moves it where it can be seen
    torch.version.cuda = "13.0"

    cuda: Any = torch.cuda
    streams = importlib.reload(sys.modules["torch.cuda.streams"])
    cuda.Stream, cuda.Event, cuda.ExternalStream = streams.Stream, streams.Event, streams.ExternalStream
    cuda._cudart = Runtime
    cuda._exchange_device = cuda._maybe_exchange_device = exchange_device
    cuda._device_count_nvml = devices
    cuda._check_capability = cuda._check_cubins = lambda: None
    cuda.get_device_properties = lambda *_: Properties()
    cuda.default_generators = tuple(torch.Generator(f"cuda:{index}") for index in range(cuda.device_count()))

    profiler: Any = torch.profiler.profiler
    profiler.supported_activities = lambda: {profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA}
    cuda.nvtx._nvtx = Nvtx
    c10d: Any = distributed_c10d
    c10d.Backend.backend_capability["nccl"] = ["cpu", "cuda"]  # the tensors inside those on CUDA are on the CPU
    fake_pg.FakeProcessGroup._set_sequence_number_for_group = lambda _: None
    c10d._NCCL_AVAILABLE, c10d.ProcessGroupNCCL = True, ProcessGroupNCCL
