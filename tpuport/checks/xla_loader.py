"""Loaders that put batches on the device: `MpDeviceLoader`, `ParallelLoader`."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument
from tpuport.analysis.module import Module
from tpuport.analysis.xla import only_takes
from tpuport.draft import Context, Draft, Role
from tpuport.model import Replace, Rule

PACKAGE = "torch_xla.distributed.parallel_loader"
DEVICE_LOADER = f"{PACKAGE}.MpDeviceLoader"
PARALLEL_LOADER = f"{PACKAGE}.ParallelLoader"
TUNING = (
    "loader_prefetch_size",
    "device_prefetch_size",
    "host_to_device_transfer_threads",
    "batches_per_execution",
    "batchdim",
)
"""Arguments that steer queues and threads, and no values."""

OWN_LOADER = {"_loader", "_parallel_loader", "_parallel_loader_kwargs"}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every loader that is wrapped."""
    module = context.module
    inside = next((n for n in module.of_type(ast.Attribute) if n.attr in OWN_LOADER), None)
    for use in context.xla.of(DEVICE_LOADER, PARALLEL_LOADER):
        call = module.call_of(use.node)
        if call is None:
            yield Draft(rule, use.node, Role.BLOCKS, reason="it is not called here")
            continue
        many = use.name == PARALLEL_LOADER
        loader = argument(call, 0, "cpu_loader" if many else "loader")
        device = argument(call, 1, "devices" if many else "device")
        if inside is not None:
            reason = f"line {module.span(inside).line} reaches into such a loader"
            yield Draft(rule, call, Role.BLOCKS, reason=reason)
        elif (
            loader is None
            or device is None
            or not only_takes(call, 2, "cpu_loader", "loader", "devices", "device", *TUNING)
        ):
            reason = "its arguments shard what it loads, or are not known"
            yield Draft(rule, call, Role.BLOCKS, reason=reason)
        elif many:
            yield _parallel(module, rule, call, loader, device)
        else:
            span = module.span(call)
            holes = (module.span(loader), module.span(device))
            yield Draft(rule, call, Role.MOVES, (Replace(span, "{device_loader}({0}, {1})", holes),))


def _parallel(module: Module, rule: Rule, call: ast.Call, loader: ast.expr, devices: ast.expr) -> Draft:
    """`ParallelLoader(loader, [device])`, of which only `.per_device_loader(device)` is used."""
    if not isinstance(devices, ast.List | ast.Tuple) or len(devices.elts) != 1:
        return Draft(rule, call, Role.BLOCKS, reason="it feeds several devices from one process")
    takers = _takers(module, call)
    if not takers:
        return Draft(rule, call, Role.BLOCKS, reason="it is used for more than `per_device_loader` in this function")
    edits = [Replace(module.span(call), "{0}", (module.span(loader),))]
    for taker in takers:
        assert isinstance(taker.func, ast.Attribute)
        holes = (module.span(taker.func.value), module.span(taker.args[0]))
        edits.append(Replace(module.span(taker), "{device_loader}({0}, {1})", holes))
    return Draft(rule, call, Role.MOVES, tuple(edits))


def _takers(module: Module, call: ast.Call) -> list[ast.Call]:
    """The calls of `per_device_loader` on what is made; empty when it is used in another way too."""
    parent = module.parents[call]
    if isinstance(parent, ast.Attribute):
        uses: list[ast.expr] = [call]
    elif isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
        target = parent.targets[0]
        names = [node for node in module.of_type(ast.Name) if node.id == target.id and isinstance(node.ctx, ast.Load)]
        scope = module.scopes[target]
        uses = [node for node in names if (found := module.lookup(node)) is not None and found[0] is scope]
    else:
        return []
    takers = [_taker(module, use) for use in uses]
    return [taker for taker in takers if taker is not None] if all(takers) else []


def _taker(module: Module, use: ast.expr) -> ast.Call | None:
    attribute = module.parents[use]
    if not isinstance(attribute, ast.Attribute) or attribute.attr != "per_device_loader":
        return None
    taker = module.call_of(attribute)
    return taker if taker is not None and len(taker.args) == 1 and not taker.keywords else None
