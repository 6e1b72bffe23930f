"""What deploys an engine that serves language models: manifests, values of charts, and commands."""

import pytest
from answers import findings, found

from tpuport import kinds
from tpuport.model import Severity

POD = """\
containers:
  - name: server
    image: vllm/vllm-openai:v0.29.0
    args:
      - --model
      - some/model
      - --dtype=half
      - --quantization
      - bitsandbytes
      - --kv-transfer-config
      - '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}'
    resources: {limits: {nvidia.com/gpu: 1}}
  - name: other
    args: [--model-path, model]
    command: ["python3", "-m", "sglang.launch_server"]
"""
LLM_D = """\
modelArtifacts: {uri: "hf://some/model"}
decode:
  parallelism: {tensor: 8}
  containers:
    - name: vllm
      image: ghcr.io/llm-d/llm-d-cuda:v0.5.0
      modelCommand: vllmServe
      args: ["--attention-backend", "FLASHINFER"]
"""
LLM_D_TPU = """\
modelArtifacts: {uri: "hf://some/model"}
accelerator: {type: google}
decode:
  extraConfig:
    nodeSelector: {cloud.google.com/gke-tpu-accelerator: tpu-v6e-slice}
  containers:
    - name: vllm
      image: vllm/vllm-tpu:v0.26.0
      modelCommand: vllmServe
      args: ["--max-model-len=4096"]
"""
STACK = """\
servingEngineSpec:
  runtimeClassName: nvidia
  modelSpec:
    - name: llama
      repository: vllm/vllm-openai
      tag: latest
      requestGPU: 1
"""
CLUSTER = """\
apiVersion: resource.nvidia.com/v1beta1
kind: ComputeDomain
---
spec:
  affinity:
    nodeAffinity:
      matchExpressions:
        - {key: nvidia.com/gpu.product, operator: In, values: [H100]}
  coveredResources: ["cpu", "nvidia.com/gpu"]
  nodeSelector: {cloud.google.com/gke-gpu-driver-version: latest}
  volumes:
    - hostPath: {path: /home/kubernetes/bin/nvidia}
    - hostPath: {path: /data}
"""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("pod.yaml", POD, ["TP550:3", "TP559:7", "TP559:9", "TP559:11", "TP557:12", "TP559:15"]),
        ("values.yaml", LLM_D, ["TP557:1", "TP550:6", "TP559:8"]),
        (
            "values.yaml",
            LLM_D.replace("decode:", "accelerator: {type: nvidia}\ndecode:"),
            ["TP557:2", "TP550:7", "TP559:9"],
        ),
        ("values.yaml", LLM_D_TPU, []),
        ("values.yaml", STACK, ["TP557:2", "TP550:5", "TP557:7"]),
        ("cluster.yaml", CLUSTER, ["TP557:1", "TP557:8", "TP557:9", "TP557:10", "TP557:12"]),
        ("x.sh", "docker run --rm vllm/vllm-openai:latest --model m --dtype float16\n", ["TP550:1", "TP559:1"]),
        ("x.sh", "docker run vllm/vllm-tpu:v0.26.0 vllm serve m --dtype bfloat16\n", []),
        ("x.sh", "vllm serve m --quantization $QUANTIZATION --dtype auto\n", []),
        ("x.sh", "python -m sgl_jax.launch_server --device tpu\n", []),
        ("x.sh", "srun --container-image=nvcr.io#nvidia/pytorch:25.01-py3 a\n", ["TP550:1"]),
        ("x.sh", "docker pull nginx:1.25\ndocker run a/b:gpu-1 ls x/y:z\n", ["TP550:2"]),
        ("x.yaml", "model: some/model-gpu\nimage: assets/gpu.png\nbaseImage: org/app-gpu:1\n", ["TP550:3"]),
    ],
)
def test_findings_are_these(name: str, text: str, expected: list[str]) -> None:
    assert found(name, text) == expected


def test_a_server_of_vllm_is_information_until_it_asks_for_what_a_tpu_lacks() -> None:
    told = [(f.code, f.severity) for f in findings("x.sh", "vllm serve m --tensor-parallel-size 4\n")]
    assert told == [("TP559", Severity.INFO)]


@pytest.mark.parametrize(
    ("image", "said"),
    [
        ("vllm/vllm-openai:latest", "vllm/vllm-tpu"),
        ("lmsysorg/sglang:latest", "lmsysorg/sglang-jax"),
        ("nvcr.io/nvidia/tritonserver:24.01-py3", "NVIDIA's own engines"),
        ("nvcr.io/nvidia/k8s/dcgm-exporter:3.1", "looks after NVIDIA's GPUs"),
        ("tensorflow/tensorflow:latest-gpu", "another framework"),
        ("pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime", "python:3.12-slim"),
    ],
)
def test_each_image_has_its_own_answer(image: str, said: str) -> None:
    told = [f.reason for f in findings("x.yaml", f"containers:\n  - image: {image}\n") if f.code == "TP550"]
    assert len(told) == 1
    assert said in told[0]


@pytest.mark.parametrize(
    "image", ["vllm/vllm-tpu:v0.26.0", "rocm/vllm:latest", "lmsysorg/sglang-jax:latest", "vllm/x:cpu"]
)
def test_images_for_something_else_are_left_alone(image: str) -> None:
    assert found("x.yaml", f"containers:\n  - image: {image}\n") == []


def test_a_repository_that_only_serves_is_read() -> None:
    look = kinds.handler("yaml").look
    for raw in (b"image: vllm/vllm-openai:latest\n", b"image: ghcr.io/llm-d/llm-d:v0.4.0\nmodelArtifacts: {}\n"):
        seen = look(kinds.Path("values.yaml"), raw)
        assert seen is not None
        assert seen.matches
        assert seen.facts.uses_torch
