"""What files that name packages are told: the code and the line of every finding, and no more than those."""

from pathlib import Path

import pytest
from answers import RULES, findings, found

from tpuport import kinds
from tpuport.analysis.libraries import STAND_INS
from tpuport.kinds import packages
from tpuport.model import Project, Severity, Span

PYPROJECT = """\
[project]
name = "x"
requires-python = ">=3.8,<3.11"
dependencies = [
  "torch==2.1",  # pinned
  'numpy<2 ; python_version < "3.9"', 'numpy<2',
  "flash-attn @ https://example.org/flash_attn-2.5.6%2Bcu122torch2.3-cp311-linux_x86_64.whl",
]
[project.optional-dependencies]
gpu = ["xformers", "bitsandbytes>=0.43"]
[[tool.uv.index]]
url = "https://download.pytorch.org/whl/cu121"
"""
POETRY = """\
[tool.poetry.dependencies]
python = "~3.9"
torch = {version = "~2.1", source = "pytorch"}
torchvision = "^0.20"
triton = "*"
deepspeed = {version = "*", optional = true}
[tool.poetry.group.dev.dependencies]
cupy-cuda12x = "*"
[[tool.poetry.source]]
url = "https://download.pytorch.org/whl/cu118"
"""
PIPFILE = """\
[[source]]
url = "https://download.pytorch.org/whl/cu118"
[packages]
torch = "==2.0.1+cu118"
requests = "*"
[requires]
python_version = "3.10"
"""
CONDA = """\
name: x
channels: [pytorch, nvidia]
dependencies:
  - python=3.8
  - pytorch=2.1=py3.8_cuda12.1_cudnn8
  - pytorch::pytorch-cuda=12.1   # the driver's
  - numpy=1.24.*
  - pip:
    - torchvision==0.16.0+cu121
    - --extra-index-url https://download.pytorch.org/whl/cu121
    - wandb
"""
FREEZE = """\
# of a cluster
--extra-index-url=https://download.pytorch.org/whl/cu121
-r base.txt
torch==2.1.0+cu121 \\
    --hash=sha256:00
torchaudio==2.1.0+cu121
nvidia-cublas-cu12==12.1.3.1
nvidia-cudnn-cu12==8.9.2.26
triton==2.1.0
git+https://github.com/NVIDIA/apex.git@master
https://download.pytorch.org/whl/cu118/torch-2.0.1%2Bcu118-cp310-cp310-linux_x86_64.whl
torch_scatter
"""
SETUP_CFG = """\
[metadata]
name = x
[options]
python_requires = >=3.8, <3.10
install_requires =
    torch>=1.8,<2   # old
    tqdm
[options.extras_require]
gpu =
    xformers
"""


SETUP = """\
import setuptools

base = [
    "torch==1.7.1",  # old
    "numpy<2",
]
extras = {"gpu": ["xformers"], "dev": ["pytest"]}
setuptools.setup(
    name="triton",
    python_requires=">=3.6,<3.9",
    install_requires=base,
    extras_require=extras,
    keywords="apex",
)
print("flash-attn")
"""


def test_a_setup_script_is_read_and_not_run() -> None:
    assert found("setup.py", SETUP) == ["TP512:4", "TP515:5", "TP513:10"]
    assert [f.code for f in findings("setup.py", SETUP) if f.severity is Severity.INFO] == ["TP514"]
    assert found("tool.py", "def setup(**kw): ...\nsetup(install_requires=['torch==1.7'])\n") == []


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("pyproject.toml", PYPROJECT, ["TP513:3", "TP512:5", "TP515:6", "TP510:7", "TP514:7", "TP511:12"]),
        ("pyproject.toml", POETRY, ["TP513:2", "TP512:3", "TP514:5", "TP511:10"]),
        ("Pipfile", PIPFILE, ["TP511:2", "TP510:4", "TP512:4", "TP513:7"]),
        (
            "environment.yml",
            CONDA,
            ["TP513:4", "TP510:5", "TP512:5", "TP514:6", "TP515:7", "TP510:9", "TP511:10"],
        ),
        (
            "requirements-gpu.txt",
            FREEZE,
            ["TP511:2", "TP510:4", "TP512:4", "TP510:6", "TP514:7", "TP514:9", "TP514:10", "TP510:11", "TP512:11"],
        ),
        ("setup.cfg", SETUP_CFG, ["TP513:4", "TP512:6"]),
        ("requirements.txt", "flask>=2\nnumpy<2\nrequests==2.31\n", []),
        ("requirements.txt", "torch\ntorchvision>=0.15\nnumpy\n", []),
        ("requirements/base.in", "torch~=2.1\n", []),
        ("requirements.txt", "torch==2.1; sys_platform == 'darwin'\ntorch>=2.11; sys_platform == 'linux'\n", []),
        ("requirements.txt", "torch>2.15\n", ["TP512:1"]),
        ("requirements.txt", "torch==2.15.*\ntorch<=2.11\ntorch>=2.15\n", []),
        ("train.sh", "pip install torch==2.0.0 -f https://download.pytorch.org/whl/cu118 $X\n", ["TP512:1", "TP511:1"]),
        ("train.sh", "conda install -y -c nvidia pytorch cudatoolkit=11.3 python=3.8\n", ["TP514:1", "TP513:1"]),
        ("Dockerfile", "FROM python:3.9-slim\nRUN pip install \\\n  torch \\\n  'numpy<2'\n", ["TP513:1", "TP515:4"]),
    ],
)
def test_findings_are_these(name: str, text: str, expected: list[str]) -> None:
    assert found(name, text) == expected


def test_a_finding_says_what_to_do() -> None:
    text = "torch==2.12.0+cu126\ntorchvision==0.27.0+cu126\n"
    (torch, vision) = [finding for finding in findings("requirements.txt", text) if finding.code == "TP510"]
    assert torch.message == "`torch==2.12.0+cu126` is a build for CUDA"
    assert "https://download.pytorch.org/whl/cpu" in torch.reason
    assert "fails to import" in vision.reason
    assert vision.span == Span(2, 0, 2, 25)


def test_nothing_is_said_where_no_file_speaks_of_torch() -> None:
    assert kinds.handler("requirements").findings("triton\nnvidia-cublas-cu12\n", Project("2.11"), RULES) == []


@pytest.mark.parametrize(
    ("version", "specifier"),
    [
        ("^2.1", ">=2.1,<3"),
        ("^0.2.3", ">=0.2.3,<0.3"),
        ("~2.1", ">=2.1,<2.2"),
        ("~2", ">=2,<3"),
        ("2.1.0", "==2.1.0"),
        ("2.*", "==2.*"),
        (">=1.8, <2", ">=1.8,<2"),
        ("*", ""),
        ("^1 || ^2", ""),
    ],
)
def test_ranges_of_poetry(version: str, specifier: str) -> None:
    assert packages.poetry_specifier(version) == specifier


@pytest.mark.parametrize(
    ("text", "name", "specifier"),
    [
        ("torch", "torch", ""),
        ("Flash_Attn[x]>= 2 ,<3", "flash-attn", ">=2,<3"),
        ("torch (>=1.8)", "torch", ">=1.8"),
        ("./local", None, ""),
        ("-e .", None, ""),
        ("$EXTRA", None, ""),
        ("git+ssh://git@host/o/apex.git#egg=apex", "apex", ""),
        ("https://h/whl/cu118/torch-2.0.1%2Bcu118-cp310-none-any.whl", "torch", "==2.0.1+cu118"),
    ],
)
def test_requirements_of_pip(text: str, name: str | None, specifier: str) -> None:
    one = packages.requirement(text, Span(1, 0, 1, 1))
    assert (one and one.name, one.specifier if one else "") == (name, specifier)


@pytest.mark.parametrize("library", [name for name in STAND_INS if "." not in name and name.islower()])
def test_what_may_not_be_imported_may_not_be_asked_for_either(library: str) -> None:
    package = library.replace("_", "-")
    texts = {
        "requirements.txt": f"{package}>=1\n",
        "pyproject.toml": f'[project]\ndependencies = ["{package}"]\n',
        "environment.yaml": f"dependencies:\n- {package}\n",
        "setup.cfg": f"[options]\ninstall_requires = {package}\n",
        "setup.sh": f"pip install -q {package}\n",
        "Dockerfile": f"FROM python:3.12\nRUN pip install {package}\n",
    }
    for name, text in texts.items():
        look = kinds.handler_of(Path(name)).look(Path(name), text.encode())
        assert look is not None, name
        assert look.matches, name
        assert [one.partition(":")[0] for one in found(name, text)] == ["TP514"], name
