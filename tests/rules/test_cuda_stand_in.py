"""The stand-in for CUDA does what CUDA does where migrated code could differ."""

import json
import subprocess
import sys
from pathlib import Path
from shutil import which
from typing import Any

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(which("c++") is None, reason="there is no C++ compiler")

SNIPPETS = {
    "its devices": "print(torch.cuda.is_available(), torch.cuda.device_count(), torch.accelerator.is_available())",
    "a tensor": "x = torch.ones(2, device='cuda')\nprint(x.device, x.is_cuda, x.type(), x.cpu().device)",
    "the current device": "torch.cuda.set_device(1)\nprint(torch.ones(1).cuda().device)",
    "two devices": "torch.ones(2, device='cuda') + torch.ones(2)",
    "two of CUDA": "torch.ones(2, device='cuda:0') + torch.ones(2, device='cuda:1')",
    "a scalar of the CPU": "print((torch.ones(2, device='cuda') + torch.tensor(1.0)).device)",
    "no such device": "torch.ones(2, device='cuda:2')",
    "to NumPy": "torch.ones(2, device='cuda').numpy()",
    "autocast": """
x = torch.ones(2, 2, device="cuda")
with torch.autocast("cuda"):
    print((x @ x).dtype, (x + x).dtype)
""",
    "a scaler": """
scaler = torch.amp.GradScaler("cuda")
print(scaler.is_enabled(), scaler.scale(torch.ones(1).cuda()).item())
""",
    "a model": """
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)  # before the model moves: its parameters stay the same objects
x = torch.ones(2, 3)
for device in ("cpu", "cuda"):
    torch.nn.init.ones_(model.weight)
    model.to(device).zero_grad()
    model(x.to(device)).sum().backward()
    optimizer.step()
    print(next(model.parameters()).device, model.weight.tolist(), model.weight.grad.device)
""",
    "a checkpoint of the CPU": """
import io

file = io.BytesIO()
torch.save(torch.ones(2), file)
for place in (None, "cuda", lambda storage, _: storage.cuda(1)):
    file.seek(0)
    print(torch.load(file, map_location=place).device)
""",
    "effects": """
torch.cuda.synchronize()
torch.accelerator.synchronize()
torch.cuda.empty_cache()
torch.ones(1).cuda()
""",
}


@pytest.fixture(scope="module")
def endings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("cuda")
    (folder / "jobs.json").write_text(json.dumps(SNIPPETS), encoding="utf-8")
    command = ["-m", "tests.rules.run_snippets", "cuda-stand-in", str(folder / "jobs.json"), str(folder / "results")]
    subprocess.run([sys.executable, *command], cwd=Path(__file__).parents[2], check=True, timeout=100)
    found: dict[str, dict[str, Any]] = {}
    for line in (folder / "results").read_text(encoding="utf-8").splitlines():
        found |= json.loads(line)
    return found


@pytest.mark.parametrize(
    ("snippet", "printed"),
    [
        ("its devices", "True 2 True"),
        ("a tensor", "cuda:0 True torch.cuda.FloatTensor cpu"),
        ("the current device", "cuda:1"),
        ("a scalar of the CPU", "cuda:0"),
        ("autocast", "torch.float16 torch.float32"),
        ("a scaler", "True 65536.0"),
        ("a checkpoint of the CPU", "cpu\ncuda:0\ncuda:1"),
    ],
)
def test_it_answers_as_cuda(snippet: str, printed: str, endings: dict[str, dict[str, Any]]) -> None:
    assert endings[snippet].get("printed") == printed + "\n", endings[snippet]


@pytest.mark.parametrize(
    ("snippet", "error"),
    [
        ("two devices", "found cpu and cuda:0"),
        ("two of CUDA", "found cuda:0 and cuda:1"),
        ("no such device", "invalid device ordinal"),
        ("to NumPy", "can't convert cuda:0 device type tensor to numpy"),
    ],
)
def test_it_refuses_as_cuda(snippet: str, error: str, endings: dict[str, dict[str, Any]]) -> None:
    assert error in endings[snippet].get("error", ""), endings[snippet]


def test_a_model_trains_there_as_on_the_cpu(endings: dict[str, dict[str, Any]]) -> None:
    on_cpu, on_cuda = endings["a model"]["printed"].splitlines()
    assert on_cuda == on_cpu.replace("cpu", "cuda:0")


def test_it_tells_what_it_was_asked(endings: dict[str, dict[str, Any]]) -> None:
    assert endings["effects"]["effects"] == ["synchronize 0", "synchronize 0", "empty cache", "copy cpu cuda:0"]
