"""Weights, inputs, outputs and gradients of the script's models in its first steps, as digests."""

import functools
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch

from tpuport.profile.digests import Digest
from tpuport.profile.records import Precision, RecordWriter, TensorSeen

_SAMPLE = 64
_HELD_LIMIT = 256 * 1024 * 1024
"""Bytes of tensors held until the end of the step; beyond that they are read at once, and the device is waited for."""
_AT_ONCE = 2**22
"""Numbers of a tensor that are widened to float64 at a time."""
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_clone, _cpu = torch.Tensor.clone, torch.Tensor.cpu


class Numbers:
    """Copies every tensor that it sees and reads it at the end of the step, so that deferred work stays deferred.

    Parts of a model are seen only where nothing is compiled: what watches them would become a part of the graph.
    """

    def __init__(self, writer: RecordWriter, steps: int, *, parts: bool, watch_draws: bool) -> None:
        self._writer = writer
        self._steps = steps
        self._parts = parts
        self._watch_draws = watch_draws
        self._thread = threading.get_ident()
        self._step = 0
        self._precision_known = False
        self._names: weakref.WeakKeyDictionary[torch.nn.Module, str] = weakref.WeakKeyDictionary()
        self._roots: Counter[str] = Counter()
        self._seen: Counter[tuple[str, str, str]] = Counter()
        self._held: list[tuple[str, str, str, int, bool, torch.Tensor]] = []
        self._held_bytes = 0
        self._draws = torch.default_generator.get_state() if watch_draws else None
        self._hooks: dict[int, Any] = {}
        self._call_impl = torch.nn.Module._call_impl

    @property
    def _on(self) -> bool:
        return self._step < self._steps and threading.get_ident() == self._thread and self._writer.owns_process

    def install(self) -> None:
        """Watch the parts of models too, where they can be seen."""
        if not self._parts or not self._steps:
            return
        call_impl = self._call_impl

        @functools.wraps(call_impl)
        def watched(module: torch.nn.Module, *arguments: Any, **keywords: Any) -> Any:
            return self._watched(call_impl, module, arguments, keywords)

        torch.nn.Module._call_impl = watched

    def outermost(
        self, call: Callable[..., Any], module: torch.nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:
        """Call a model; where its parts are seen, it is one of them."""
        if not self._precision_known:
            self._precision_known = True
            self._writer.write(Precision(_precision(module)))
        if self._on:
            self._know(module)
        if self._parts:
            return call(module, *arguments, **keywords)
        return self._watched(call, module, arguments, keywords)

    def step_ended(self) -> None:
        """Write what was seen in the step; after the last one, watch no more."""
        if self._step >= self._steps:
            return
        self._read()
        self._seen.clear()
        self._step += 1
        if self._step == self._steps:
            for hook in self._hooks.values():
                hook.remove()
            self._hooks.clear()
            if self._parts:
                torch.nn.Module._call_impl = self._call_impl

    def _know(self, root: torch.nn.Module) -> None:
        """Name a model's parts; see its weights and watch their gradients."""
        if root not in self._names:
            kind = type(root).__name__
            self._roots[kind] += 1
            known = kind if self._roots[kind] == 1 else f"{kind}#{self._roots[kind]}"
            for path, module in root.named_modules():
                self._names.setdefault(module, f"{known}.{path}" if path else known)
        for path, module in root.named_modules():
            for name, parameter in module.named_parameters(recurse=False):
                where = self._names.get(module, path)
                if not self._seen["weight", where, name]:
                    self._see("weight", where, name, parameter)
                if parameter.requires_grad and id(parameter) not in self._hooks:
                    self._hooks[id(parameter)] = parameter.register_post_accumulate_grad_hook(
                        functools.partial(self._accumulated, where, name)
                    )

    def _accumulated(self, module: str, name: str, parameter: torch.Tensor) -> None:
        if parameter.grad is not None and self._step < self._steps and self._writer.owns_process:
            self._see("gradient", module, name, parameter.grad)

    def _watched(
        self, call: Callable[..., Any], module: torch.nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:
        if not self._on:
            return call(module, *arguments, **keywords)
        name = self._names.get(module, type(module).__name__)
        given = {**{str(position): value for position, value in enumerate(arguments)}, **keywords}
        for path, tensor in _tensors(given):
            self._see("input", name, path, tensor)
        result = call(module, *arguments, **keywords)
        for path, tensor in _tensors(result):
            self._see("output", name, path, tensor)
        return result

    def _see(self, what: str, module: str, name: str, tensor: torch.Tensor) -> None:
        if type(tensor) not in _PLAIN or tensor.layout is not torch.strided or tensor.is_meta or tensor.is_quantized:
            return
        number = self._seen[what, module, name]
        self._seen[what, module, name] += 1
        with torch.no_grad():
            # A clone of a lazily conjugated or negated tensor is another computation; a copy to the host is none.
            copy = _cpu(tensor.detach()) if tensor.is_conj() or tensor.is_neg() else _clone(tensor.detach())
        self._held.append((what, module, name, number, self._drawn(), copy))
        self._held_bytes += copy.numel() * copy.element_size()
        if self._held_bytes > _HELD_LIMIT:
            self._read()

    def _drawn(self) -> bool:
        """Whether CPU random numbers were drawn since the last tensor was seen."""
        if self._draws is None:
            return False
        before, self._draws = self._draws, torch.default_generator.get_state()
        return not torch.equal(before, self._draws)

    def _read(self) -> None:
        held, self._held, self._held_bytes = self._held, [], 0
        for what, module, name, number, drawn, tensor in held:
            self._writer.write(TensorSeen(self._step, what, module, name, number, drawn, digest(tensor)))


def _tensors(value: Any, path: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors in what a model takes or gives, each with its place there."""
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _tensors(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for position, item in enumerate(value):
            yield from _tensors(item, f"{path}.{position}" if path else str(position))


def digest(tensor: torch.Tensor) -> Digest:
    """Return what is kept of `tensor`, of any shape, type and device; waits for the device."""
    host = _cpu(tensor.detach()).resolve_conj().resolve_neg()
    flat = (torch.view_as_real(host) if host.is_complex() else host).reshape(-1)
    count = flat.numel()
    block = max(1, -(-count // _SAMPLE))
    padding = -count % block
    rows = torch.cat([flat, flat.new_zeros(padding)]).reshape(-1, block)
    signs = torch.randint(0, 2, (block,), generator=torch.Generator().manual_seed(0)).to(torch.float64) * 2 - 1
    sums: list[float] = []
    squares, finite = 0.0, -padding
    for some in rows.split(max(1, _AT_ONCE // block)):
        wide = some.to(torch.float64)
        kept = torch.nan_to_num(wide, nan=0.0, posinf=0.0, neginf=0.0)
        finite += int(torch.isfinite(wide).sum())
        squares += float(kept.square().sum())
        sums += (kept @ signs / block**0.5).tolist()
    return Digest(
        shape=tuple(host.shape),
        dtype=str(host.dtype).removeprefix("torch."),
        magnitude=(squares / finite) ** 0.5 if finite else 0.0,
        not_finite=count - finite,
        sample=tuple(rows[:, 0].to(torch.float64).tolist()),
        sums=tuple(sums) if block > 1 else (),
        block=block,
    )


def _precision(module: torch.nn.Module) -> tuple[str, ...]:
    """Return the floating-point types of a model's weights, and the one that autocast computes in, if it is on."""
    dtypes = {tensor.dtype for tensor in module.parameters() if tensor.is_floating_point()}
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    device = accelerator.type if accelerator is not None else "cpu"
    if torch.is_autocast_enabled(device):
        dtypes.add(torch.get_autocast_dtype(device))
    return tuple(sorted(str(dtype).removeprefix("torch.") for dtype in dtypes))
