"""Engines that serve language models: what they run on a TPU with."""

import ast
from collections.abc import Iterator

from tpuport.analysis import serving
from tpuport.analysis.calls import argument, is_constant
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule, Severity

VLLM = {
    *("vllm.LLM", "vllm.EngineArgs", "vllm.AsyncEngineArgs"),
    *("vllm.engine.arg_utils.EngineArgs", "vllm.engine.arg_utils.AsyncEngineArgs", "vllm.entrypoints.llm.LLM"),
}
SGLANG = {"sglang.Engine", "sglang.Runtime", "sglang.srt.server_args.ServerArgs"}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every engine, and for what one is asked for that a TPU lacks."""
    module = context.module
    for call in module.calls_of(*VLLM, *SGLANG):
        if module.callee(call) in VLLM:
            yield from _vllm(rule, call)
        else:
            yield Draft(rule, call, Role.NEUTRAL, message="SGLang's PyTorch engine runs no TPU", reason=serving.SGLANG)


def _vllm(rule: Rule, call: ast.Call) -> Iterator[Draft]:
    half = is_constant(argument(call, None, "dtype"), "float16", "half", "float32", "float")
    reason = "it comes as vllm-torchtpu, one chip for each step of `tensor_parallel_size`"
    if half:
        reason += ", and computes in bfloat16 whatever `dtype` says"
    yield Draft(rule, call, Role.NEUTRAL, reason=reason, severity=Severity.INFO)
    quantization = argument(call, None, "quantization")
    named = quantization.value if isinstance(quantization, ast.Constant) else None
    if quantization is not None and isinstance(named, str) and named not in serving.QUANTIZED:
        message = f"vLLM reads no {named} weights on a TPU"
        reason = f"it reads {', '.join(serving.QUANTIZED)}"
        yield Draft(rule, quantization, Role.NEUTRAL, message=message, reason=reason)
