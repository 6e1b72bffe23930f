import pytest

from tpuport.source import project


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("class A:\n def cuda(self): ...\nclass B:\n class C:\n  async def cuda (self): ...\n", ["A", "C"]),
        ("def cuda(): ...\n", []),
        ("class A:\n def cuda(self) ...\n", []),
        ("class A: cuda = 1\n", []),
        ("class A(object):\n def cuda(self):\n  self.model.cuda()\n", ["A"]),
        ("class A(abc.ABC, Generic[T]):\n def cuda(self):\n  self.model.cuda()\n", ["A"]),
        ("class A(nn.Module):\n def cuda(self):\n  self.model.cuda()\n", []),
    ],
)
def test_classes_with_their_own_cuda_method(source: str, names: list[str]) -> None:
    assert sorted(project.cuda_methods(source.encode())) == names


@pytest.mark.parametrize(
    "source",
    [
        "os.environ['CUDA_VISIBLE_DEVICES'] = '0'",
        "x = os.environ['CUDA_VISIBLE_DEVICES'] = gpu",
        "environ.setdefault('CUDA_VISIBLE_DEVICES', '0')",
        "os.putenv('CUDA_VISIBLE_DEVICES', '0')",
        "os.environ.update({'CUDA_VISIBLE_DEVICES': '0'})",
        "os.environ.update(CUDA_VISIBLE_DEVICES='0')",
        "os.environ.update(dict(CUDA_VISIBLE_DEVICES='0'))",
        "os.environ |= {'CUDA_VISIBLE_DEVICES': '0'}",
    ],
)
def test_visible_devices_are_set(source: str) -> None:
    assert project.defers_cuda(source.encode())


@pytest.mark.parametrize(
    "source",
    [
        "print(os.environ['CUDA_VISIBLE_DEVICES'])",
        "# os.environ['CUDA_VISIBLE_DEVICES'] = '0'",
        "env = {'CUDA_VISIBLE_DEVICES': '0'}",
        "os.environ.get('CUDA_VISIBLE_DEVICES')",
        "env['CUDA_VISIBLE_DEVICES'] = '0'",
        "os.environ['CUDA_VISIBLE_DEVICES'] = (",
    ],
)
def test_visible_devices_are_not_set(source: str) -> None:
    assert not project.defers_cuda(source.encode())


@pytest.mark.parametrize(
    ("source", "selects"),
    [
        ("torch.cuda.set_device(rank)", True),
        ("with torch.cuda.device(1): pass", True),
        ("with cuda.device(1): pass", True),
        ("from torch.cuda import device", True),
        ("torch.accelerator.set_device_index(1)", True),
        ("torch.device('cuda:1')", False),
        ("# torch.cuda.set_device(1)", False),
        ("x: torch.cuda.device", False),
    ],
)
def test_whether_the_current_device_changes(source: str, selects: bool) -> None:
    assert project.selects_device(source.encode()) is selects


def test_a_text_names_no_device() -> None:
    source = b'"""The device (e.g., "cuda") of it."""\nx.to(self.where)\nmodel.to(place, dtype)\n'
    assert project.device_names(source) == ("place", "where")
