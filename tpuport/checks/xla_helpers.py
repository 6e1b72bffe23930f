"""Helpers of PyTorch/XLA that have nothing to do with its devices."""

from collections.abc import Iterator

from tpuport.analysis.xla import MODEL, only_takes
from tpuport.draft import Context, Draft, Role
from tpuport.model import Replace, Rule

PROCESSES = "torch_xla.distributed.xla_multiprocessing"
CLASSES = {f"{MODEL}.RateTracker": "{rate_tracker}", f"{PROCESSES}.MpSerialExecutor": "{serial_executor}"}
_SDPA = "`torch.nn.functional.scaled_dot_product_attention`, which has a kernel for TPUs"
_PALLAS = "a kernel of Pallas, through torch.tpu.pallas"
OTHERS = {
    f"{PROCESSES}.MpModelWrapper": "each process makes the model anew: seed them alike, and move the model itself",
    "torch_xla.utils.utils.SampleGenerator": "a list of one batch, repeated, or a dataset of zeros does the same",
    f"{MODEL}.send_cpu_data_to_device": "`.to(device)` of each tensor of the batch",
    f"{MODEL}.get_rng_state": "`torch.get_rng_state()` holds the generator of the CPU; that of a TPU can not be read",
    **{f"torch_xla.experimental.custom_kernel.{name}": _SDPA for name in ("flash_attention", "FlashAttention")},
    **{
        f"torch_xla.experimental.custom_kernel.{name}": _PALLAS
        for name in ("paged_attention", "ragged_paged_attention", "gmm")
    },
    "torch_xla.experimental.scan.scan": "a loop, under torch.compile",
    "torch_xla.experimental.scan_layers.scan_layers": "a loop over the layers, under torch.compile",
    "torch_xla.distributed.xla_backend.ProcessGroupXla": "`init_process_group()` makes the group of the device at hand",
    f"{MODEL}.get_memory_info": "`torch.accelerator.get_memory_info()` gives free and total bytes",
}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every helper: those that a few lines stand for are written out, for others an answer is given."""
    module = context.module
    for use in context.xla.of(*CLASSES, *OTHERS):
        call = module.call_of(use.node)
        if use.name in OTHERS:
            yield Draft(rule, call or use.node, Role.BLOCKS, reason=OTHERS[use.name])
        elif call is None or not only_takes(call, 1, "smooth_factor"):
            yield Draft(rule, use.node, Role.BLOCKS, reason="it is more than made here")
        else:
            edit = Replace(module.span(use.node), CLASSES[use.name])
            yield Draft(rule, call, Role.MOVES, (edit,))
