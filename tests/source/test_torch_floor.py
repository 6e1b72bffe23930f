from pathlib import Path

import pytest

from tpuport.errors import UsageError
from tpuport.source import torch_floor
from tpuport.source.torch_floor import Floor


@pytest.mark.parametrize(
    ("specifier", "expected"),
    [
        (">=1.13", "1.13"),
        (">=1.13.1", "1.13.1"),
        ("== 2.1.0", "2.1"),
        ("==2.1.2+cu118", "2.1.2"),
        ("==2.1.*", "2.1"),
        ("~=2.0.1", "2.0.1"),
        (">2.0", "2.0.1"),
        (">2.0,!=2.0.1", "2.1"),
        (">=1.7,<2", "1.7"),
        ("<2.0", "1.0"),
        ("<=1.13", "1.0"),
        ("<3", None),
        ("!=2.0", None),
        ("", None),
        ("=1.12.1=py3.9_cuda11", "1.12.1"),
        (">=2.0 ; python_version > '3'", "2.0"),
        (">=2.6.0.dev20250101", "2.6"),
        (">=2,<1", None),
        ("==nonsense", None),
        (">=99.0", "99.0"),
    ],
)
def test_the_lowest_release_admitted(specifier: str, expected: str | None) -> None:
    assert torch_floor.lowest(specifier) == expected


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("requirements.txt", "numpy\n\ntorch>=1.10  # why\n", Floor("1.10", "requirements.txt:3")),
        ("requirements.txt", "torch\ntorchvision==0.9\npytorch-lightning==1.5\n", None),
        (
            "requirements.txt",
            "torch[opt-einsum] == 2.1.0 ; sys_platform == 'linux'\n",
            Floor("2.1", "requirements.txt:1"),
        ),
        (
            "requirements-gpu.txt",
            "torch @ https://download.pytorch.org/whl/cu118/torch-2.0.1%2Bcu118-cp310-linux.whl\n",
            Floor("2.0.1", "requirements-gpu.txt:1"),
        ),
        ("requirements/base.txt", "torch==1.8.1\n", Floor("1.8.1", "requirements/base.txt:1")),
        ("environment.yml", "dependencies:\n  - pytorch=1.12\n  - pip\n", Floor("1.12", "environment.yml:2")),
        ("environment.yml", "dependencies:\n  - pip:\n    - torch==2.3\n", Floor("2.3", "environment.yml:3")),
        ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    torch>=1.9\n", Floor("1.9", "setup.cfg:4")),
        ("setup.py", "setup(\n  install_requires=['torch>=1.6'],\n)\n", Floor("1.6", "setup.py:2")),
        ("setup.py", "setup(install_requires=['torch>=1.6'\n", None),
        ("pyproject.toml", '[project]\ndependencies = [\n  "torch>=2.2",\n]\n', Floor("2.2", "pyproject.toml:3")),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^2.0"\n', Floor("2.0", "pyproject.toml:2")),
        (
            "pyproject.toml",
            '[tool.poetry.dependencies]\ntorch = {version = "~2.1.1"}\n',
            Floor("2.1.1", "pyproject.toml:2"),
        ),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "1.13.1"\n', Floor("1.13.1", "pyproject.toml:2")),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "*"\n', None),
        ("pyproject.toml", "torch = [broken\n", None),
        ("pyproject.toml", 'project = "torch"\ntool = 1\n', None),
    ],
)
def test_each_place_is_read(tmp_path: Path, file: str, content: str, expected: Floor | None) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(content)
    assert torch_floor.find(tmp_path, tmp_path) == expected


def test_package_metadata_decides_over_requirement_files(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==1.4\n")
    (tmp_path / "setup.py").write_text("setup(install_requires=['torch>=2.0'])\n")
    assert torch_floor.find(tmp_path, tmp_path) == Floor("2.0", "setup.py:1")


def test_the_lowest_of_several_files_counts(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.10\n")
    (tmp_path / "requirements-old.txt").write_text("torch==2.9\n")
    assert torch_floor.find(tmp_path, tmp_path) == Floor("2.9", "requirements-old.txt:1")


def test_the_nearest_directory_that_says_anything_decides(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "requirements.txt").write_text("torch==2.1\n")
    directories = [tmp_path / "sub", tmp_path]
    assert torch_floor.nearest(directories, tmp_path) == Floor("2.1", "requirements.txt:1")
    (tmp_path / "sub/requirements.txt").write_text("torch==2.3\n")
    assert torch_floor.nearest(directories, tmp_path) == Floor("2.3", "sub/requirements.txt:1")


def test_versions_compare_as_numbers() -> None:
    assert torch_floor.older("2.6", "2.11")
    assert torch_floor.older("2.6", "2.6.1")
    assert not torch_floor.older("2.6.0", "2.6")


def test_a_version_that_is_none_is_refused() -> None:
    assert torch_floor.checked("2.6.1", "--min-torch") == "2.6.1"
    for version in ("2", "two", "2.6+cu", ""):
        with pytest.raises(UsageError, match="--min-torch"):
            torch_floor.checked(version, "--min-torch")
