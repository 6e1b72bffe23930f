"""What serves language models on a TPU, as the engines' own documentation has it."""

VLLM = (
    "vLLM serves a TPU from the image `vllm/vllm-tpu`, or by `pip install vllm-torchtpu==0.29.0` on Python 3.12; both "
    "have `vllm serve`"
)
SGLANG = (
    "SGLang-JAX serves a TPU: the image `lmsysorg/sglang-jax`, or `pip install 'sglang-jax[tpu]'`, and "
    "`python -m sgl_jax.launch_server --device tpu`"
)

QUANTIZED = ("tpu_int8", "compressed-tensors", "awq", "fp8", "mxfp4", "modelopt_fp4", "deepseek_v4_fp8")
"""Quantized weights that vllm-torchtpu 0.29.0 reads, as its platform lists them."""
