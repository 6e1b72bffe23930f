"""Libraries that exist for CUDA alone, with what stands in for each on a TPU, and others that know no TPU of torch."""

STAND_INS = {
    "triton": "a stock PyTorch op under torch.compile, or a Pallas kernel",
    "flash_attn": "torch.nn.functional.scaled_dot_product_attention",
    "xformers": "torch.nn.functional.scaled_dot_product_attention",
    "apex": "torch.amp, torch.optim and torch.nn.LayerNorm",
    "amp_C": "torch.amp and torch.optim",
    "bitsandbytes": "torch.optim; there is no 8-bit counterpart on TPU",
    "transformer_engine": "stock torch.nn layers in bfloat16",
    "cupy": "torch operators",
    "pycuda": "torch operators",
    "numba.cuda": "torch operators, or a Pallas kernel",
    "pynvml": "torch.accelerator memory statistics",
    "nvidia.dali": "torch.utils.data with CPU transforms",
    "tensorrt": "torch.compile",
    "torch_tensorrt": "torch.compile",
    "deepspeed": "torch.distributed.fsdp.fully_shard",
    "megatron": "torch.distributed.tensor.parallel and fully_shard",
    "fairscale": "torch.distributed.fsdp.fully_shard",
    "colossalai": "torch.distributed.tensor.parallel and fully_shard",
    "horovod": "torch.nn.parallel.DistributedDataParallel",
    "flashinfer": "torch.nn.functional.scaled_dot_product_attention",
    "flash_attn_interface": "torch.nn.functional.scaled_dot_product_attention",
    "auto_gptq": "weights in bfloat16",
    "gptqmodel": "weights in bfloat16",
    "awq": "weights in bfloat16",
    "unsloth": "transformers and peft, with the weights in bfloat16",
    "liger_kernel": "the modules that it replaces, under torch.compile",
    "sageattention": "torch.nn.functional.scaled_dot_product_attention",
    "mamba_ssm": "the same recurrence in torch operators, or a Pallas kernel",
    "causal_conv1d": "torch.nn.functional.conv1d with padding on the left",
    "spconv": "dense convolutions; there are no sparse ones on TPU",
    "MinkowskiEngine": "dense convolutions; there are no sparse ones on TPU",
    "torchsparse": "dense convolutions; there are no sparse ones on TPU",
    "tinycudann": "torch.nn.Linear layers and an encoding in torch operators",
    "nvdiffrast": "a rasterizer in torch operators, or the CPU",
    "torch.utils.cpp_extension": "a stock PyTorch op, or a Pallas kernel",
}
"""Importable name → what to use in its place."""

_OWN_KERNELS = {"ctranslate2", "onnxruntime", "faiss", "cudf", "isaacgym", "numba", "warp", "jax", "tensorflow"}
"""Libraries that take a device by name and run elsewhere too, with kernels of their own: none for a TPU under torch."""


def library_of(name: str) -> str:
    """The library that a qualified name belongs to; empty when it is none of these."""
    while name and name not in STAND_INS:
        name = name.rpartition(".")[0]
    return name


def with_own_kernels(name: str) -> str:
    """The library, of any of these, that a qualified name belongs to; empty for torch and all that builds on it."""
    root = name.partition(".")[0]
    return root if root in _OWN_KERNELS else library_of(name)
