"""What images, scripts, manifests and settings are told: the code and the line of every finding, and no more."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from answers import PROJECT, RULES, findings, found

from tpuport import catalog, kinds
from tpuport.model import Severity

SCRIPT = """\
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gres=gpu:8
#SBATCH --gpus-per-node 8
set -e
export NCCL_DEBUG=INFO
nvidia-smi
CUDA_VISIBLE_DEVICES=0,1 python -m torch.distributed.launch \\
    --nproc_per_node=2 \\
    train.py "$@" > log.txt 2>&1 &
cat <<EOF
torchrun is only mentioned
EOF
srun --gpus=4 torchrun --nproc_per_node gpu train.py || true  # all
docker run --rm --gpus '"device=0"' image python x.py
echo "run torchrun --nproc_per_node=8 by hand"  # torchrun
"""
COMPOSE = """\
services:
  train:
    image: nvidia/cuda:12.1.0-devel-ubuntu22.04
    runtime: nvidia
    environment:
      - NVIDIA_VISIBLE_DEVICES=all
      - LOG=1
    command: torchrun --nproc_per_node=8 train.py
  infer:
    image: vendor/serve:1
    gpus: all
    deploy:
      resources:
        reservations:
          devices:
            - driver: nvidia
              count: 1
              capabilities: [gpu]
"""
MANIFEST = """\
apiVersion: v1
kind: Pod
spec:
  nodeSelector:
    cloud.google.com/gke-accelerator: nvidia-l4
  tolerations:
    - key: nvidia.com/gpu
      operator: Exists
  containers:
    - name: train
      image: pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime
      command: ["torchrun", "--nproc_per_node=gpu", "train.py"]
      env:
        - name: A
          value: b
      resources:
        limits: {nvidia.com/gpu: 8}
---
kind: ConfigMap
data:
  script: |
    # comment
    pip install torch==2.1
    python train.py
"""
SKY = """\
resources:
  any_of:
    - accelerators: A100:8
    - accelerators: {H100: 8, tpu-v6e-8: 1}
envs:
  NCCL_DEBUG: INFO
run: |
  torchrun train.py
"""
CONFIG = """\
defaults: [_self_]
device: cuda:1   # the second
model: {device_map: cuda, dtype: float16}
devices: ["cuda"]
trainer:
  accelerator: gpu
  devices: 4
  precision: 16
dist_backend: nccl
fp16: true
use_cuda: True
num_gpus: 8
gpus: 0
amp: false
path: /data/cuda
note: "runs on cuda"
text: |
  device: cuda
"""
DEEPSPEED = """\
{
  "fp16": {"enabled": true, "loss_scale": 0},
\t"bf16": {"enabled": false},
  "backend": "nccl", "device": "cuda",
  "name": "a \\"device\\": cuda",
  "list": [{"device": "cuda:0"}]
}
"""
WEIGHTS = '{"architectures": ["LlamaForCausalLM"], "torch_dtype": "float16"}\n'
SETTINGS = """\
[train]
device = "cuda"   # first
backend = 'nccl'
precision = "16-mixed"
matrix = [["a"], ["b", {device = "cuda:0"}]]
text = \"\"\"
device = "cuda"
\"\"\"
"""
HELD = """\
LAUNCHER="accelerate launch \\
  --mixed_precision fp16 --num_processes 8"
export CMD='torchrun --nproc_per_node gpu train.py'
MSG="please run torchrun train.py"
RUN=torchrun
ARGS=(python -m torch.distributed.launch
  --nproc_per_node=gpu train.py)
srun bash -c "A=0 torchrun $X train.py"
eval "deepspeed train.py"
echo "nvidia-smi; torchrun train.py"
grep -c "torchrun" log.txt
python -c "import torch; nvidia-smi"
"""
TOLD = """\
python train.py --fp16 --gpus 4 \\
  --device cuda --lr 0.1 --attn_implementation=flash_attention_2
python -m pkg.train trainer.accelerator=gpu "trainer.precision=16-mixed" +trainer.devices=4
accelerate launch train.py --load_in_4bit True --bf16 --cuda
opts="--gpus all -it"
PYTHONPATH=. python eval.py --fp16 false --gpus 0 --device cpu
"""
TOLD_FOUND = [
    *("TP562:1", "TP563:1", "TP560:2", "TP564:2", "TP563:3", "TP562:3"),
    *("TP554:4", "TP564:4", "TP563:4", "TP551:5"),
]
QLORA = """\
base_model: torch_model
attn_implementation: kernels-community/flash-attn3
load_in_4bit: true
load_in_8bit: false
optimizer: paged_adamw_8bit
deepspeed: configs/zero2.json
plugin: {liger_rope: true}
tf32: true
optim: adamw_torch
optimizer_name: adamw
"""
TWO_CONTAINERS = """\
containers:
  - name: a
    command: [torchrun, a.py]
  - name: b
    command: [torchrun, b.py]
"""
IMAGE = """\
# syntax=docker/dockerfile:1
ARG BASE=nvcr.io/nvidia/pytorch:24.01-py3
FROM ${BASE} AS build
ENV TORCH_CUDA_ARCH_LIST="8.0;9.0" \\
    PATH=/usr/local/bin
RUN apt-get update && \\
    # a comment in between
    nvidia-smi && pip install \\
    flash-attn
FROM build
FROM python:3.12-slim
CMD ["python", "-m", "torch.distributed.run", "--nproc_per_node=8", "train.py"]
"""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "run.sh",
            SCRIPT,
            ["TP556:3", "TP556:4", "TP552:7", "TP554:8", "TP556:14", "TP554:14", "TP555:14", "TP551:15"],
        ),
        ("docker-compose.yml", COMPOSE, ["TP550:3", "TP551:4", "TP554:8", "TP551:11", "TP551:18"]),
        (
            "pod.yaml",
            MANIFEST,
            ["TP557:5", "TP557:7", "TP550:11", "TP554:12", "TP555:12", "TP557:17", "TP512:23"],
        ),
        ("task.yaml", SKY, ["TP558:3", "TP558:4", "TP554:8"]),
        (
            "config.yaml",
            CONFIG,
            ["TP560:2", "TP562:3", "TP563:6", "TP562:8", "TP561:9", "TP562:10", "TP563:11", "TP563:12"],
        ),
        ("ds_config.json", DEEPSPEED, ["TP562:2", "TP561:4", "TP560:4", "TP560:6"]),
        ("config.json", WEIGHTS, []),
        ("x.json", '// "a\n{"device": "cuda", // b\n /* c */ "url": "http://x", "l": ["cuda", ],\n}', ["TP560:2"]),
        ("train.toml", SETTINGS, ["TP560:2", "TP561:3", "TP562:4", "TP560:5"]),
        ("gpu.Dockerfile", IMAGE, ["TP550:2", "TP552:8", "TP514:9", "TP554:12"]),
        ("x.sh", "if command -v nvidia-smi; then\n  nvidia-smi\nfi\nnvidia-smi -L || true\n", []),
        ("x.sh", "if command -v nvidia-smi; then a; fi\nnvidia-smi | x\n", ["TP552:2"]),
        ("x.sh", "which nvidia-smi && nvidia-smi | x\nnvidia-smi | x", ["TP552:2"]),
        ("x.sh", "which nvidia-smi || exit\nnvidia-smi | x", []),
        ("x.sh", "N=$(nvidia-smi -L | wc -l)\n", ["TP552:1"]),
        ("x.sh", "pip list | grep deepspeed\nA=1 deepspeed --num_gpus 8 train.py\n", ["TP554:2"]),
        ("compose.yml", "services:\n  a:\n    image: ${BASE:-nvidia/cuda:12.4.1-base}\n", ["TP550:3"]),
        ("x.yaml", 'n: "a\u2028b\x85c"\nx: {a: "\U0001f600", device: cuda}\nbackend: nccl\n', ["TP560:2", "TP561:3"]),
        ("accelerate.yaml", "distributed_type: MULTI_GPU\ngpu_ids: all\n", ["TP563:1", "TP563:2"]),
        ("x.sh", "accelerate launch --cpu train.py\naccelerate config\nA=1 accelerate launch train.py\n", ["TP554:3"]),
        ("x.yaml", "image: assets/gpu.png\nitems:\n  - image: logo-cuda.svg\n", []),
        ("x.yaml", "precision: 16\ntable: prices\n", []),
        ("x.sh", "export CUDA_VISIBLE_DEVICES=\nFOO=1 bar\n", []),
        ("x.sh", "#SBATCH --gpus-per-node=0\nsrun --gpus=0 a\nA=1 srun -G 4 a\n", ["TP556:3"]),
        ("x.sh", "#SBATCH --partition=gpu\n#SBATCH -C a100\n#SBATCH -p cpu\n", ["TP556:1", "TP556:2"]),
        ("x.sh", "srun -n 1 docker run --gpus all image\n", ["TP551:1"]),
        (
            "x.sh",
            HELD,
            ["TP554:1", "TP562:2", "TP554:3", "TP555:3", "TP554:5", "TP554:6", "TP555:7", "TP554:8", "TP554:9"],
        ),
        ("Makefile", "RUN ?= torchrun --nproc_per_node=8\nWHO = torch's team\n", ["TP554:1"]),
        ("x.yaml", QLORA, ["TP564:2", "TP564:3", "TP564:5", "TP564:6", "TP564:7", "TP564:8"]),
        ("ds.json", '{"zero_optimization": {"stage": 2}, "torch": 1}', ["TP564:1"]),
        ("x.yaml", "distributed_type: FSDP\ntorch: 2\n", ["TP564:1"]),
        ("x.yaml", TWO_CONTAINERS, ["TP554:3", "TP554:5"]),
        ("x.sh", TOLD, TOLD_FOUND),
        ("x.yaml", "run: |\n  python train.py --backend nccl\nname: torch\n", ["TP561:2"]),
        (
            "x.sh",
            "pytest --device cuda\npython -m pytest --device cuda\npython -m pip install --cuda x\ngrep --fp16 x.py\n",
            [],
        ),
        ("x.sh", "export XLA_USE_BF16=1 PJRT_DEVICE=TPU\n", ["TP643:1"]),
        ("requirements.txt", "torch_xla[tpu]==2.8.0\ntorch_tpu\n", ["TP517:1"]),
        ("Dockerfile", "FROM pytorch/pytorch:latest\nFROM pytorch/torchserve:latest-cpu\n", ["TP550:1"]),
        (
            "x.yaml",
            "ncclSettings:\n  - {name: TORCH_BACKEND, value: nccl}\n  - path: /dev/nvidia0\n",
            ["TP561:2", "TP557:3"],
        ),
    ],
)
def test_findings_are_these(name: str, text: str, expected: list[str]) -> None:
    assert found(name, text) == expected


def test_what_a_tpu_passes_over_is_information() -> None:
    told = {f.span.line for f in findings("run.sh", SCRIPT) if f.severity is Severity.INFO}
    assert told == {6, 8}
    assert [f.span.line for f in findings("c.yml", COMPOSE) if f.code == "TP553"] == [6]
    assert [f.code for f in findings("config.json", WEIGHTS)] == ["TP562"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("chart.yaml", "device: {{ .Values.device }}\n  image: cuda\n"),
        ("x.json", '{"device": CONFIG, "x": "cuda"}\n'),
        ("x.toml", "device = cuda\n"),
        ("deep.json", "[" * 100_000 + '"cuda"' + "]" * 100_000),
    ],
)
def test_what_is_no_such_file_is_skipped_with_its_reason(name: str, text: str) -> None:
    with pytest.raises(kinds.Unparsed, match=r"not (YAML|JSON|TOML) as it stands|nested too deeply"):
        findings(name, text)


@pytest.mark.parametrize(("name", "text"), [("run.sh", SCRIPT), ("gpu.Dockerfile", IMAGE), ("pod.yaml", MANIFEST)])
def test_only_what_is_rewritten_changes_and_only_once(name: str, text: str) -> None:
    handler = kinds.handler_of(Path(name))
    done = handler.rewrite(text, PROJECT, RULES, unsafe=False, line_length=None)
    before, after = text.split("\n"), done.text.split("\n")
    assert len(before) == len(after)
    changed = {number for number, (old, new) in enumerate(zip(before, after, strict=True), 1) if old != new}
    assert changed == {finding.span.line for finding in done.fixed}
    assert handler.rewrite(done.text, PROJECT, RULES, unsafe=False, line_length=None).text == done.text


def test_what_a_script_is_told_is_rewritten_where_it_stands() -> None:
    done = kinds.handler("shell").rewrite(TOLD, PROJECT, RULES, unsafe=True, line_length=None)
    assert "--device cuda --lr 0.1 --attn_implementation=sdpa\n" in done.text
    assert '"trainer.precision=bf16-mixed" +trainer.devices=4\n' in done.text
    assert len(done.text.split("\n")) == len(TOLD.split("\n"))


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash here")
def test_a_script_stays_a_script() -> None:
    done = kinds.handler("shell").rewrite(SCRIPT, PROJECT, RULES, unsafe=True, line_length=None)
    assert "if command -v nvidia-smi >/dev/null 2>&1; then nvidia-smi; fi\n" in done.text
    assert "torchrun --nproc_per_node auto train.py || true  # all" in done.text
    subprocess.run(["bash", "-n"], input=done.text.encode(), check=True)


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash here")
@pytest.mark.parametrize("there", [True, False])
def test_a_call_of_nvidia_smi_behaves_as_before_where_there_is_one(tmp_path: Path, there: bool) -> None:
    if there:
        (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho a card\nexit 3\n")
        (tmp_path / "nvidia-smi").chmod(0o755)
    new = kinds.handler("shell").rewrite(
        "set -e\nnvidia-smi\necho on\n", PROJECT, RULES, unsafe=False, line_length=None
    )
    bash = shutil.which("bash")
    assert bash is not None
    ran = subprocess.run(
        [bash, "-c", new.text], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert (ran.stdout, ran.returncode) == (("a card\n", 3) if there else ("on\n", 0))


@pytest.mark.parametrize(
    "text",
    [
        "cmds=(\n  nvidia-smi\n  ls\n)\n",
        "if\n  nvidia-smi\nthen\n  torchrun x.py\nfi\n",
        "#!/bin/csh\nnvidia-smi\n",
        "nvidia-smi > cards.txt\n",
        "a | \\\n  nvidia-smi\n",
        'echo "\nnvidia-smi\n"\n',
        "cat <<-EOF\n\tnvidia-smi\n\tEOF\n",
        "f() { nvidia-smi; }\n",
    ],
)
def test_a_call_that_is_no_statement_of_its_own_stays(text: str) -> None:
    done = kinds.handler("shell").rewrite(text, PROJECT, RULES, unsafe=True, line_length=None)
    assert done.text == text


def test_comments_ignore_findings_in_every_syntax() -> None:
    texts = {
        "x.yaml": "device: cuda  # tpuport: ignore[TP560] GPUs\n# tpuport: ignore[TP561] so\nbackend: nccl\n",
        "x.toml": "# tpuport: off[TP560] all of it\ndevice = 'cuda'\n# tpuport: on[TP560]\n",
        "x.sh": "# tpuport: ignore[distributed-launcher] own launcher\ntorchrun \\\n  train.py\n",
        "Dockerfile": "# tpuport: ignore-file[TP550] built for GPUs\nFROM nvidia/cuda:12\n",
        "requirements.txt": "torch>=2.11\ntriton  # tpuport: ignore[TP514] imported nowhere\n",
    }
    for name, text in texts.items():
        above = [f for f in findings(name, text) if f.severity is not Severity.INFO]
        assert above, name
        assert all(f.ignored for f in above), name
    unused = findings("x.yaml", "device: cpu  # tpuport: ignore[TP560] why\n")
    assert [(f.code, f.span.column) for f in unused] == [("TP001", 13)]


def test_annotations_stand_above_the_statement() -> None:
    text = "RUN a && \\\n    torchrun \\\n      x.py\n"
    handler = kinds.handler("dockerfile")
    left = [f for f in handler.findings(text, PROJECT, RULES) if not f.fixable]
    once = handler.annotate(text, left)
    assert once.startswith("# TODO(tpuport): TP554 on a TPU host run ")
    assert once.endswith(text)
    assert handler.annotate(once, handler.findings(once, PROJECT, RULES)) == once
    for text in (
        "run: >\n  torchrun\n  x.py\nb: 1\n",
        "jobs:\n  - run: |\n      a\n      torchrun x.py\n    env: {}\n",
        'command: "a &&\n  torchrun x.py"\n',
    ):
        annotated = kinds.handler("yaml").annotate(text, findings("x.yaml", text))
        assert annotated != text
        assert yaml.safe_load(annotated) == yaml.safe_load(text)
    text = 'echo "\n$(torchrun x.py)\n"\n'
    assert kinds.handler("shell").annotate(text, findings("x.sh", text)).endswith(text)
    assert kinds.handler("json").annotate(DEEPSPEED, findings("x.json", DEEPSPEED)) == DEEPSPEED


MAKEFILE = """\
# torchrun in a comment
export CUDA_VISIBLE_DEVICES ?= 0,1
GPUS := $(shell nvidia-smi -L | wc -l)
PYTHON = python

.PHONY: train
train: export NCCL_DEBUG = INFO
train: data torchrun
	@nvidia-smi
	-CUDA_VISIBLE_DEVICES=$(IDS) $(PYTHON) -m torch.distributed.launch \\
		--nproc_per_node=2 train.py
	accelerate launch --multi_gpu --mixed_precision fp16 train.py
install:
	pip install torch==2.12.0+cu126
"""


def test_makefile() -> None:
    told = [f"{finding.code}:{finding.span.line}" for finding in findings("Makefile", MAKEFILE)]
    environment = ["TP553:2", "TP553:7", "TP553:10"]
    wanted = ["TP552:3", "TP552:9", "TP554:10", "TP554:12", "TP562:12", "TP510:14"]
    assert sorted(told) == sorted(environment + wanted)
    handler = kinds.handler("makefile")
    unsafe = handler.rewrite(MAKEFILE, PROJECT, RULES, unsafe=True, line_length=None).text
    assert "--mixed_precision bf16 train.py" in unsafe
    annotated = handler.annotate(MAKEFILE, findings("Makefile", MAKEFILE)).split("\n")
    assert not any(line.lstrip().startswith("#") and line.startswith("\t") for line in annotated)


EXAMPLES = [
    (rule.name, example.file, text)
    for rule in catalog.load(examples=True).rules
    for example in rule.examples
    for text in dict.fromkeys((example.before, example.after or example.before))
    if (kinds.of(example.file) or kinds.PYTHON) not in (kinds.PYTHON, "notebook")
]


@pytest.mark.parametrize(("file", "text"), [example[1:] for example in EXAMPLES], ids=[name for name, *_ in EXAMPLES])
def test_comments_for_a_person_change_no_finding_and_come_once(file: str, text: str) -> None:
    handler = kinds.handler_of(Path(file))
    once = handler.annotate(text, findings(file, text))
    assert [finding.code for finding in findings(file, once)] == [finding.code for finding in findings(file, text)]
    assert handler.annotate(once, findings(file, once)) == once
