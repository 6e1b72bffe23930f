"""Tensors on the devices of the stand-in."""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.weak import WeakIdKeyDictionary

from tests.cuda_stand_in.effects import told

aten: Any = torch.ops.aten
INDEXED = {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"}
"""Operations whose indices may be on the CPU."""
HALF_TO_FLOAT = (aten._softmax.default, aten._log_softmax.default)
FLOAT_TO_HALF = (aten._softmax_backward_data.default, aten._log_softmax_backward_data.default)
"""Operations that CUDA does together with a conversion, and the CPU does not."""
CPU = torch.device("cpu")
pinned = WeakIdKeyDictionary()


class CudaTensor(torch.Tensor):
    """A tensor on CUDA; `inner` is the one on the CPU that has its values."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls: Any, inner: torch.Tensor, device: torch.device) -> Any:
        layout: dict[str, Any] = {"strides": inner.stride(), "storage_offset": inner.storage_offset()}
        kind: dict[str, Any] = {"dtype": inner.dtype, "layout": inner.layout, "device": device}
        made: Any = torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, **layout, **kind, requires_grad=inner.requires_grad
        )
        made.inner = inner
        return made

    def __init__(self, inner: torch.Tensor, device: torch.device) -> None:
        pass

    def __tensor_flatten__(self) -> Any:
        return ["inner"], self.device

    @staticmethod
    def __tensor_unflatten__(inner: Any, device: Any, size: Any, stride: Any) -> Any:
        return CudaTensor(inner["inner"], device)

    def __repr__(self, **_: Any) -> str:
        return repr(self.inner).removesuffix(")") + f", device='{self.device}')"

    def tolist(self) -> Any:
        return self.inner.tolist()

    def numpy(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() first.")

    __array__ = numpy

    def __reduce_ex__(self, protocol: Any) -> Any:
        given = (self.inner.detach(), self.dtype, str(self.device), self.requires_grad)
        return torch._utils._rebuild_device_tensor_from_cpu_tensor, given

    def __deepcopy__(self, memo: Any) -> Any:
        if id(self) not in memo:
            copy: Any = CudaTensor(self.inner.detach().clone(), self.device).requires_grad_(self.requires_grad)
            if isinstance(self, torch.nn.Parameter):
                copy._is_param = True
            memo[id(self)] = copy
        return memo[id(self)]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {})


class Machine(TorchDispatchMode):
    """Runs every operation of torch."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {})


def run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The result of one operation, computed on the CPU.

    Raises:
        RuntimeError: Its tensors are on two devices, or are asked for where none is.
    """
    if func is aten.is_pinned.default:
        return args[0] in pinned
    if func is aten.record_stream.default:
        return told("record stream", args[1].stream_id)
    device = device_of_result(func, args, kwargs)
    if func is aten.set_.source_Storage_storage_offset:
        args = (args[0], args[1].cpu(), *args[2:])
    plain, named = tree_map_only(CudaTensor, lambda x: x.inner, (args, kwargs))
    plain, named = tree_map_only(torch.device, lambda x: CPU if x.type == "cuda" else x, (plain, named))
    if func is aten._pin_memory.default:
        if isinstance(args[0], CudaTensor):
            raise RuntimeError("only dense CPU tensors can be pinned")
        result = args[0].clone()
    elif func in HALF_TO_FLOAT and plain[2]:
        result = func(plain[0].float(), plain[1], False)
    elif func in FLOAT_TO_HALF:
        result = func(*plain[:3], plain[0].dtype).to(plain[3])
    else:
        result = func(*plain, **{name: value for name, value in named.items() if name != "pin_memory"})
    if func is aten._pin_memory.default or kwargs.get("pin_memory"):
        pinned[result] = True
    if func is aten._to_copy.default and device != args[0].device:
        told("copy", str(args[0].device), str(device))
    if func is aten.copy_.default and args[1].device != device:
        told("copy", str(args[1].device), str(device))
    if device.type != "cuda":
        return result
    wrappers = {id(x.inner): x for x in tree_leaves((args, kwargs)) if isinstance(x, CudaTensor)}
    wrapped = tree_map_only(
        torch.Tensor, lambda x: wrappers.get(id(x)) if id(x) in wrappers else CudaTensor(x, device), result
    )
    return return_and_correct_aliasing(func, args, kwargs, wrapped) if wrappers else wrapped


def device_of_result(func: Any, args: Any, kwargs: dict[str, Any]) -> torch.device:
    """The device that an operation asks for, or the one of its tensors."""
    if kwargs.get("device") is not None:
        asked = torch.device(kwargs["device"])
        if asked.type == "cuda" and asked.index is None:
            return torch.device("cuda", torch.cuda.current_device())
        if asked.type == "cuda" and asked.index >= torch.cuda.device_count():
            raise RuntimeError("CUDA error: invalid device ordinal")
        return asked
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    if func in (aten.copy_.default, aten.set_.source_Tensor):
        return tensors[0].device
    there = {x.device for x in tensors if isinstance(x, CudaTensor) or x.dim()}
    if len(there) > 1 and func._schema.name not in INDEXED:
        found = " and ".join(sorted(map(str, there)))
        raise RuntimeError(f"Expected all tensors to be on the same device, but found {found}: {func}")
    return next((x.device for x in tensors if isinstance(x, CudaTensor)), CPU)


class CudaStorage(torch.UntypedStorage):
    """The storage of a tensor that `torch.load` puts on CUDA; its bytes are on the CPU."""

    _device: torch.device

    @property
    def device(self) -> torch.device:
        return self._device


def moved(storage: torch.UntypedStorage, device: Any = None, **_: Any) -> CudaStorage:
    """What `storage.cuda(device)` returns."""
    there = CudaStorage(storage.nbytes()).copy_(storage)
    index = device if isinstance(device, int) else torch.device(device or "cuda").index
    there._device = torch.device("cuda", torch.cuda.current_device() if index is None else index)
    return there


def restored(storage: torch.UntypedStorage, location: str) -> CudaStorage | None:
    """The storage that `torch.load` is to put at `location`, if that is on CUDA."""
    return moved(storage, location) if location.startswith("cuda") else None


real_rebuild: Any = torch._utils._rebuild_tensor


def rebuild(storage: Any, *layout: Any) -> torch.Tensor:
    """The tensor that `torch.load` makes over a storage."""
    there = storage._untyped_storage
    if not isinstance(there, CudaStorage):
        return real_rebuild(storage, *layout)
    on_cpu = torch.UntypedStorage(there.nbytes()).copy_(there)
    inner = real_rebuild(torch.storage.TypedStorage(wrap_storage=on_cpu, dtype=storage.dtype, _internal=True), *layout)
    return CudaTensor(inner, there.device)


class LegacyType(type):
    """The type of torch.cuda.FloatTensor and its like: it has no instances of its own."""

    dtype: torch.dtype

    def __call__(cls, *values: Any) -> Any:
        device = torch.device("cuda", torch.cuda.current_device())
        if len(values) == 1 and not isinstance(values[0], int | torch.Size):
            given = values[0]
            return (
                given.to(device, cls.dtype)
                if isinstance(given, torch.Tensor)
                else torch.tensor(given, dtype=cls.dtype, device=device)
            )
        return torch.zeros(*values or (0,), dtype=cls.dtype, device=device)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, torch.Tensor) and value.is_cuda and value.dtype == cls.dtype


real_set_default_tensor_type: Any = torch._C._set_default_tensor_type


def set_default_tensor_type(kind: Any) -> None:
    told("default tensor type", str(kind))
    if isinstance(kind, LegacyType):
        torch.set_default_dtype(kind.dtype)
        torch.set_default_device("cuda")
    else:
        real_set_default_tensor_type(kind)
        torch.set_default_device(None)


def install() -> None:
    names = {"Float": torch.float32, "Double": torch.float64, "Half": torch.float16, "BFloat16": torch.bfloat16}
    names |= {"Int": torch.int32, "Long": torch.int64, "Short": torch.int16, "Char": torch.int8, "Byte": torch.uint8}
    for name, dtype in {**names, "Bool": torch.bool}.items():
        kind = LegacyType(f"torch.cuda.{name}Tensor", (), {"dtype": dtype})  # torch asks for the whole name
        setattr(torch.cuda, f"{name}Tensor", kind)
    torch.serialization.register_package(0, lambda _: None, restored)
    torch.UntypedStorage.cuda = moved
    torch._utils._rebuild_tensor = rebuild
    torch._C._set_default_tensor_type = set_default_tensor_type
    torch.__future__.set_swap_module_params_on_conversion(
        True
    )  # so that a parameter stays the same object when it moves
    Machine().__enter__()
