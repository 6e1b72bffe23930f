"""What a TPU runs wrongly, slowly or not at all: findings, and code close to it that is none."""

from pathlib import Path

import pytest

from tpuport import catalog
from tpuport.kinds import python
from tpuport.match import findings
from tpuport.model import Facts, Project
from tpuport.survey import survey

RULES = catalog.load().rules
FORWARD = (
    "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
    "class Net(nn.Module):\n  def forward(self, x):\n    return {}\n"
)
STEP = "import torch\nfor step, (x, y) in enumerate(data):\n  loss = f(x)\n  loss.backward()\n  {}\n"


def found(source: str) -> list[tuple[str, str, int]]:
    result = [
        (f.code, str(f.severity), f.span.line) for f in findings(source, Project("2.11"), RULES) if f.code > "TP9"
    ]
    assert python.is_candidate(source.encode()) or not result
    return result


@pytest.mark.parametrize(
    "expression",
    ["torch.median(x)", "x.kthvalue(2)", "F.mish(x)", "torch.linalg.eigh(x)", "F.interpolate(x, mode='trilinear')",
     "F.interpolate(x, mode='bilinear', antialias=True)", "torch.distributions.Beta(x, x)"],
)  # fmt: skip
def test_an_operator_without_kernel_in_forward_is_a_warning(expression: str) -> None:
    assert found(FORWARD.format(expression)) == [("TP901", "warning", 6)]


def test_elsewhere_it_may_run_on_the_cpu() -> None:
    assert found("import torch\nm = torch.median(lengths)\n") == [("TP901", "info", 2)]
    assert found("import torch.nn as nn\nact = nn.Mish()\n") == [("TP901", "warning", 2)]


@pytest.mark.parametrize(
    "source",
    [
        FORWARD.format("F.interpolate(x, mode='bilinear'), torch.mean(x)"),
        "import torch\nimport numpy as np\nnp.median(x); x.median(); np.linalg.eigh(x); x.kthvalue(1)\n",
        "from mylib import torch\ntorch.median(x)\n",
        "torch.median(x)\n",
        "import torch\ndef f(torch): return torch.median(1)\n",
        "import torch\nclass A:\n  def forward(self, x): return x.nansum()\n",
    ],
)
def test_what_is_no_such_operator(source: str) -> None:
    assert found(source) == []


@pytest.mark.parametrize(
    "source",
    [
        FORWARD.format("x.conj().imag"),
        FORWARD.format("x.mH.imag"),
        "import torch\nc = torch.polar(r, p)\ny = c.conj().imag\n",
        "import torch\ny = torch.fft.fft(x).conj().imag\n",
    ],
)
def test_the_imaginary_part_of_a_conjugate_is_an_error(source: str) -> None:
    assert [(code, severity) for code, severity, _ in found(source)] == [("TP902", "error")]


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nimport numpy as np\ny = np.fft.fft(x).conj().imag\n",
        "import torch\ny = x.conj().imag\n",
        FORWARD.format("x.conj().resolve_conj().imag"),
        FORWARD.format("x.conj().real"),
    ],
)
def test_other_imaginary_parts(source: str) -> None:
    assert found(source) == []


@pytest.mark.parametrize(
    "statement",
    [
        "total += loss.item()",
        "log(loss.detach().cpu().numpy())",
        "print(loss.tolist())",
        "if torch.isnan(loss).any(): break",
    ],
)
def test_a_read_in_each_step_is_a_hint(statement: str) -> None:
    assert found(STEP.format(statement)) == [("TP903", "info", 5)]


@pytest.mark.parametrize(
    "source",
    [
        STEP.format("if step % 10 == 0: print(loss.item())"),
        STEP.format("pass") + "print(loss.item())\n",
        STEP.format("def f(): return loss.item()"),
        STEP.format("d.item(1)"),
        "import torch\nfor epoch in range(3):\n  for x in data:\n    loss.backward()\n  print(loss.item())\n",
        "import torch\nfor x in data:\n  print(f(x).item())\n",
        "for x in data:\n  loss.backward()\n  loss.item()\n",
    ],
)
def test_reads_that_are_rare_or_no_steps(source: str) -> None:
    assert found(source) == []


@pytest.mark.parametrize(
    "expression",
    ["torch.nonzero(x)", "x.nonzero()", "torch.unique(x)", "torch.where(x > 0)", "x.masked_select(x > 0)"],
)
def test_a_shape_that_depends_on_values_is_a_hint(expression: str) -> None:
    assert found(FORWARD.format(expression)) == [("TP904", "info", 6)]


def test_in_a_step_only_for_sure() -> None:
    assert found(STEP.format("i = torch.nonzero(y)")) == [("TP904", "info", 5)]
    assert found(STEP.format("i = y.nonzero()")) == []
    assert found("import torch\ni = torch.nonzero(labels)\n") == []
    assert found(FORWARD.format("torch.where(x > 0, x, 0)")) == []


LOADER = "from torch.utils.data import DataLoader\nd = DataLoader({})\n"


@pytest.mark.parametrize("arguments", ["data, shuffle=True", "data, 32, True", "data, shuffle=True, drop_last=False"])
def test_a_last_partial_batch_is_a_hint(arguments: str) -> None:
    assert found(LOADER.format(arguments)) == [("TP905", "info", 2)]


@pytest.mark.parametrize(
    "arguments",
    [
        "data",
        "data, shuffle=True, drop_last=True",
        "data, shuffle=s",
        "data, shuffle=True, drop_last=d",
        "data, **options",
    ],
)
def test_loaders_that_evaluate_or_drop(arguments: str) -> None:
    assert found(LOADER.format(arguments)) == []


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nx = torch.zeros(2, dtype=torch.float64)\n",
        "import torch\ntorch.set_default_dtype(torch.double)\n",
        "import torch\nx = y.to(torch.float64)\n",
        FORWARD.format("x.double()"),
    ],
)
def test_double_precision_is_a_hint(source: str) -> None:
    assert [(code, severity) for code, severity, _ in found(source)] == [("TP906", "info")]


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nx.dtype == torch.float64\n",
        "import torch\nTYPES = {'f8': torch.float64}\n",
        "import torch\nimport numpy as np\nx = np.zeros(2, dtype=np.float64).double()\n",
    ],
)
def test_double_as_a_word(source: str) -> None:
    assert found(source) == []


@pytest.mark.parametrize(
    "expression", ["x[x > 0]", "x[~(x == 1)]", "x[torch.isnan(x)]", "x[(x > 0) & ok]", "x[torch.rand(3) > 0.5]"]
)
def test_a_selection_by_a_mask_is_a_hint(expression: str) -> None:
    assert found(FORWARD.format(expression)) == [("TP904", "info", 6)]


@pytest.mark.parametrize("expression", ["x[n > 0]", "self.layers[len(x) > 2]", "x[x.n == 2]", "x[1:]", "d[k is x]"])
def test_other_subscripts(expression: str) -> None:
    assert found(FORWARD.format(expression)) == []


def test_a_mask_that_is_written_through_or_has_a_name() -> None:
    body = "m = x > 0\n    x[m] = 0\n    return x[m]"
    assert found(FORWARD.replace("return {}", body)) == [("TP904", "info", 8)]
    assert found("import torch\ny = x[x > 0]\n") == []


LENGTHS = FORWARD.replace("self, x", "self, x, rows: list[int], n: int")


@pytest.mark.parametrize(
    "expression",
    ["torch.zeros(len(rows), 2)", "torch.arange(len(rows))", "x.new_zeros((3, len(rows)))",
     "torch.zeros(max(len(r) for r in x))", "torch.empty(sum(map(len, x)))"],
)  # fmt: skip
def test_the_length_of_a_list_in_a_shape_is_a_hint(expression: str) -> None:
    assert found(LENGTHS.format(expression)) == [("TP907", "info", 6)]
    assert found(f"import torch\ndef forward(x, rows: list[int]): {expression}\n") == []


@pytest.mark.parametrize(
    "expression", ["torch.zeros(len(x))", "torch.zeros(n)", "torch.zeros(len(self.rows))", "torch.tensor(len(rows))"]
)
def test_other_lengths(expression: str) -> None:
    assert found(LENGTHS.format(expression)) == []


INDEX = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\ne = nn.Embedding(10, 4)\ny = {}\n"


@pytest.mark.parametrize(
    "expression",
    ["e(torch.tensor([3, 10]))", "e(torch.tensor(-1))", "torch.zeros(4)[torch.tensor([4])]",
     "torch.arange(4)[torch.tensor([-5])]", "torch.index_select(torch.ones(2, 3), 1, torch.tensor([3]))",
     "F.one_hot(torch.tensor([5]), num_classes=5)", "F.embedding(torch.tensor([7]), torch.rand((7, 2)))"],
)  # fmt: skip
def test_an_index_beyond_the_end_is_a_warning(expression: str) -> None:
    assert found(INDEX.format(expression)) == [("TP908", "warning", 5)]


@pytest.mark.parametrize(
    "expression",
    ["e(torch.tensor([9]))", "e(torch.tensor(i))", "torch.zeros(4)[torch.tensor([-4, 3])]", "torch.zeros(4)[9]",
     "torch.zeros(n)[torch.tensor([9])]", "F.one_hot(torch.tensor([5]))", "d[torch.tensor([99])]"],
)  # fmt: skip
def test_other_indices(expression: str) -> None:
    assert found(INDEX.format(expression)) == []
    assert found(INDEX.replace("e =", "e = nn.Embedding(1000, 4)\ne =").format("e(torch.tensor([99]))")) == []
    assert found(INDEX.format("lambda e: e(torch.tensor([99]))")) == []


def test_an_embedding_belongs_to_its_class() -> None:
    first = "import torch\nclass A(torch.nn.Module):\n  def __init__(self):\n    self.e = torch.nn.Embedding(4, 2)\n"
    call = "  def f(self):\n    return self.e(torch.tensor([4]))\n"
    assert found(first + call) == [("TP908", "warning", 6)]
    assert found(f"{first}class B(A):\n{call}") == []


AUTOCAST = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\namp = torch.autocast('cuda')\n"
NORMED = AUTOCAST + (
    "class Net(nn.Module):\n"
    "  def __init__(self):\n"
    "    self.inner, self.other = nn.Linear(8, 8), nn.Linear(8, 8)\n"
    "    self.lin = nn.Linear(8, 8)\n    self.act = nn.GELU()\n    self.norm = nn.LayerNorm({})\n"
    "  def forward(self, x, y):\n    {}\n    return x\n"
)


@pytest.mark.parametrize(
    "body",
    [
        "x = self.norm(self.lin(x))",
        "x = self.lin(x)\n    y = y + 1\n    x = self.norm(x)",
        "x = self.norm(F.dropout(self.act(self.lin(x)), 0.1).transpose(1, 2))",
        "x = x @ y\n    x = x.view(1, 8)\n    x = self.norm(x)",
        "with torch.autocast('cuda'):\n      x = self.norm(torch.bmm(x, y))",
    ],
)
def test_a_norm_of_half_precision(body: str) -> None:
    (code, severity, line) = found(NORMED.format("8", body))[0]
    assert (code, severity) == ("TP909", "warning")
    assert "self.norm(" in NORMED.format("8", body).splitlines()[line - 1]


@pytest.mark.parametrize(
    ("norm", "body"),
    [
        ("8", "x = self.norm(self.lin(x).float())"),
        ("8", "x = self.norm(x + self.lin(x))"),
        ("8", "x = self.lin(x)\n    if y: x = y\n    x = self.norm(x)"),
        ("8", "x = self.lin(x)\n    x += y\n    x = self.norm(x)"),
        ("8", "with torch.autocast('cuda', enabled=False):\n      x = self.norm(self.lin(x))"),
        ("8, elementwise_affine=False", "x = self.norm(self.lin(x))"),
        ("8, dtype=torch.bfloat16", "x = self.norm(self.lin(x))"),
    ],
)
def test_a_norm_of_what_may_be_float32(norm: str, body: str) -> None:
    assert found(NORMED.format(norm, body)) == []


def test_a_norm_of_half_precision_in_a_sequence() -> None:
    layers = "nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8), nn.ReLU(), nn.LayerNorm(8), nn.LayerNorm(8))\n"
    assert found(AUTOCAST + layers) == [("TP909", "warning", 5)]
    (finding,) = findings(AUTOCAST + layers, Project("2.11"), [rule for rule in RULES if rule.code == "TP909"])
    assert finding.span.column > layers.index("nn.ReLU")


def test_a_norm_where_no_file_uses_autocast() -> None:
    source = NORMED.format("8", "x = self.norm(self.lin(x))").replace("amp = torch.autocast('cuda')\n", "")
    rules = [rule for rule in RULES if rule.code == "TP909"]
    assert not findings(source, Project("2.11"), rules)
    assert findings(source, Project("2.11", facts=Facts(autocasts=True)), rules)


def test_a_file_with_autocast_speaks_for_all(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import torch\n")
    (tmp_path / "train.py").write_text("import torch\nuses = torch.autocast\n")
    assert not survey([tmp_path / "model.py"]).facts.autocasts
    assert survey([tmp_path / "model.py", tmp_path / "train.py"]).facts.autocasts
