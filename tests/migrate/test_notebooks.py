"""Notebooks: cells are migrated as one module, and every byte that is no changed line of code stays."""

import difflib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.command import tpuport as run_command
from tpuport import catalog, kinds
from tpuport.fixes import Rewritten
from tpuport.kinds import Unparsed
from tpuport.model import Facts, Finding, Project
from tpuport.source.notebook import Notebook

FIXTURE = Path(__file__).parents[2] / "fixtures" / "notebooks" / "train.ipynb"
RULES = catalog.load().rules
NEWEST = Project(min_torch="2.11", facts=Facts(uses_torch=True))
HANDLER = kinds.handler("notebook")


def notebook(*sources: str, **metadata: object) -> str:
    cells = [
        {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "source": source.splitlines(keepends=True),
        }
        for source in sources
    ]
    document = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 4}
    return json.dumps(document, indent=1) + "\n"


def sources(text: str) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"]]


def migrate(text: str) -> Rewritten:
    done = HANDLER.rewrite(text, NEWEST, RULES, unsafe=False, line_length=None)
    nbformat.validate(nbformat.reads(done.text, as_version=4))
    assert HANDLER.rewrite(done.text, NEWEST, RULES, unsafe=False, line_length=None).text == done.text
    return done


def found(text: str) -> list[Finding]:
    return HANDLER.findings(text, NEWEST, RULES)


def tpuport(folder: Path, *arguments: str) -> str:
    done = run_command(*arguments, cwd=folder)
    assert done.code < 2, done.err
    return done.out


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(FIXTURE, tmp_path / "train.ipynb")
    return tmp_path


@pytest.mark.parametrize("as_list", [True, False])
def test_a_cell_of_which_nothing_stays_is_empty(as_list: bool) -> None:
    document = json.loads(notebook("import torch", "import torch_xla.core.xla_model as xm", "d = xm.xla_device()"))
    for cell in document["cells"]:
        cell["source"] = cell["source"] if as_list else "".join(cell["source"])
    first, second, third = sources(migrate(json.dumps(document)).text)
    assert (first.splitlines()[0], second) == ("import torch", "")
    assert "xm" not in third


def test_every_example_settles_in_cells_too() -> None:
    examples = [example for rule in catalog.load(examples=True).rules for example in rule.examples]
    texts = dict.fromkeys(example.before for example in examples if kinds.of(example.file) == kinds.PYTHON)
    assert len(texts) > 200
    for text in texts:
        parts = text.strip().split("\n\n\n")
        try:
            done = HANDLER.rewrite(notebook(*parts), NEWEST, RULES, unsafe=False, line_length=None)
        except SyntaxError:
            continue  # a text that holds such blank lines
        assert HANDLER.rewrite(done.text, NEWEST, RULES, unsafe=False, line_length=None).text == done.text


def test_only_lines_of_code_change(folder: Path) -> None:
    before = FIXTURE.read_bytes()
    tpuport(folder, "migrate", "--allow-dirty", "--min-torch", "2.11", ".")
    after = (folder / "train.ipynb").read_bytes()
    nbformat.validate(nbformat.reads(before.decode(), as_version=4))
    nbformat.validate(nbformat.reads(after.decode(), as_version=4))
    lines = difflib.ndiff(before.decode().splitlines(True), after.decode().splitlines(True))
    changed = [line for line in lines if line[0] in "+-"]
    gone = [line[2:].strip() for line in changed if line[0] == "-"]
    assert gone == [
        r'"!nvidia-smi\n",',
        r'"source": "%%time\nmodel = nn.Linear(4, 2).cuda()\nx = torch.ones(3, 4).cuda()  # caf\u00e9\n?model",',
        r'"    out = model(batch.cuda())\n",',
        '"print(step(x).shape, torch.cuda.memory_summary)"',
    ]
    came = [line[2:].strip() for line in changed if line[0] == "+"]
    assert came[1] == (
        r'"source": "%%time\ndevice = (\n    torch.accelerator.current_accelerator()\n'
        r"    if torch.accelerator.is_available()\n    else torch.device(\"cpu\")\n)\n"
        r'model = nn.Linear(4, 2).to(device)\nx = torch.ones(3, 4).to(device)  # caf\u00e9\n?model",'
    )
    assert not before.endswith(b"\n")
    assert not after.endswith(b"\n")
    assert "0 sites rewritten" in tpuport(folder, "migrate", "--allow-dirty", "--min-torch", "2.11", ".")
    assert (folder / "train.ipynb").read_bytes() == after


PLACES = {("TP680", None, 4), ("TP510", 2, 2), ("TP101", 4, 2), ("TP101", 4, 3), ("TP101", 6, 2)}


def test_findings_name_cell_and_line(folder: Path) -> None:
    lint = ("lint", "--min-torch", "2.11", ".", "--format")
    assert "train.ipynb:cell 4:3:5: TP101 " in tpuport(folder, *lint, "concise")
    text = tpuport(folder, *lint, "text")
    assert "    2 | out = model(batch.cuda())\n      |             ^^^^^^^^^^^^" in text
    told = json.loads(tpuport(folder, *lint, "json"))["findings"]
    assert {(record["code"], record["cell"], record["line"]) for record in told} >= PLACES
    lines = FIXTURE.read_text(encoding="utf-8").splitlines()
    line = 1 + next(number for number, line in enumerate(lines) if "batch.cuda()" in line)
    assert f"line={line},endLine={line},col=24,endColumn=36," in tpuport(folder, *lint, "github")
    [result] = [
        result
        for result in json.loads(tpuport(folder, *lint, "sarif"))["runs"][0]["results"]
        if result["message"]["text"].startswith("cell 6, line 2: ")
    ]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == line
    assert lines[line - 1][23:35] == "batch.cuda()"
    assert f'"begin": {line}' in tpuport(folder, *lint, "gitlab")
    assert "train.ipynb:cell 6:2:17: TP101" in tpuport(folder, *lint, "junit")


def test_the_account_and_the_comments_name_cells(folder: Path) -> None:
    command = ("migrate", "--allow-dirty", "--min-torch", "2.11", ".", "--annotate", "--report", "port.md")
    told = tpuport(folder, *command)
    assert "`train.ipynb:cell 2:4`" in (folder / "port.md").read_text(encoding="utf-8")
    cells = sources((folder / "train.ipynb").read_text(encoding="utf-8"))
    assert "# TODO(tpuport): TP510 " in cells[1]
    assert "train.ipynb:cell 2:4:17: TP510" in told
    tpuport(folder, *command)
    assert sources((folder / "train.ipynb").read_text(encoding="utf-8")) == cells


def test_a_device_goes_where_it_is_needed_first() -> None:
    done = migrate(
        notebook("import torch\n", "print(1)\n", "import math\nx = torch.ones(1)\n", "x.cuda()\n", "x.cuda()")
    )
    cells = sources(done.text)
    assert [cell.count("device =") for cell in cells] == [0, 0, 0, 1, 0]
    assert cells[4] == "x.to(device)"


def test_an_import_goes_where_torch_comes_first() -> None:
    done = migrate(notebook("!pip install x\n", "print(1)", "from torch import nn\n", "nn.Linear(1, 1).cuda()"))
    assert sources(done.text)[:3] == ["!pip install x\n", "print(1)", "import torch\nfrom torch import nn\n"]


@pytest.mark.parametrize(
    "cells",
    [
        ("# install\n!pip install torch", "from transformers import pipeline\nx = pipeline('a', device=0)"),
        ("!pip install torch\n%matplotlib inline", "!ls", "# text\nx = y.to('cuda')"),
        ("%%bash\npip install torch", "x = y.to('cuda')"),
        ("!pip install torch\n\nname = 1\nx = y.to('cuda')",),
        ("%pip install \\\n  torch\nimport os", "x = y.to('cuda')"),
    ],
)
def test_an_import_comes_behind_what_installs_it(cells: tuple[str, ...]) -> None:
    text = "\n".join(sources(migrate(notebook(*cells)).text))
    assert text.count("import torch") == 1
    assert text.index("pip install") < text.index("import torch") < text.index("torch.accelerator")


@pytest.mark.parametrize(
    "cell",
    [
        "%matplotlib inline",
        "files = !ls -l",
        "a, b = %sql select 1",
        "!pip install \\\n  a \\\n  b",
        "pip install torch",
        "torch.nn?",
        "%%html\n<b>not: python</b>",
        "%%time\nx = 1",
        "if x:\n    !echo {x}\n    %reset -f\ny = 2",
        's = """\n%not a magic\n!nor this\n"""\n%magic\n',
        "x = 5 \\\n  % 3",
        "import os\n! echo deb && \\\n    apt-get update && \\\n    apt-get install mkl-64bit-2020.0-088\ny = 1",
        "",
        "\n\n",
        "await f()",
    ],
)
def test_what_is_not_python_stays(cell: str) -> None:
    done = migrate(notebook("import torch\nx = torch.ones(1)\n", cell, "x.cuda()\n"))
    assert sources(done.text)[1] == cell
    assert ".to(device)" in sources(done.text)[2]


def test_magics_that_speak_of_cuda_are_told() -> None:
    text = notebook("import torch\n%timeit torch.ones(1).cuda()\n", "%env CUDA_VISIBLE_DEVICES=0\n")
    assert [(f.rule, f.cell.number, f.place.line) for f in found(text) if f.cell] == [
        ("notebook-magic", 1, 2),
        ("notebook-magic", 2, 1),
    ]


def test_reasons_name_cells() -> None:
    text = notebook("import torch_xla.core.xla_model as xm\n", "xm.mark_step()\nxm.new_thing()\n")
    reasons = {f.cell.number: f.reason for f in found(text) if f.cell and f.rule == "xla-import"}
    assert reasons == {1: "it moves together with cell 2, line 2, which can not move yet"}


def test_processes_are_not_started_by_torchrun() -> None:
    text = notebook("import torch_xla\n\n\ndef train(index):\n    print(index)\n", "torch_xla.launch(train)\n")
    assert migrate(text).text == text
    assert any("one process" in finding.reason for finding in found(text))


def test_lines_may_end_as_on_windows() -> None:
    text = notebook("import torch\r\nx = torch.ones(1).cuda()\r\nprint(x)")
    done = migrate(text)
    assert ".to(device)\r\nprint(x)" in sources(done.text)[0]
    assert "\n" not in sources(done.text)[0].replace("\r\n", "")


def test_comments_ignore_findings() -> None:
    [finding] = [f for f in found(notebook("x.cuda()  # tpuport: ignore[cuda-call] as it is\n")) if f.cell]
    assert finding.ignored == "as it is"


def test_a_cell_that_does_not_parse_is_named() -> None:
    text = notebook("x.cuda()", "y = 1\n\nif y\n")
    with pytest.raises(SyntaxError, match="cell 2, line 3") as raised:
        found(text)
    assert raised.value.lineno == 1 + next(n for n, line in enumerate(text.splitlines()) if "if y" in line)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not a notebook: line 1"),
        ("{}", "format 4"),
        ('{"worksheets": []}', "format 4"),
        (notebook("x", language_info={"name": "R"}), "a notebook in r, not in Python"),
        (notebook("x", kernelspec={"language": "julia"}), "a notebook in julia"),
        (notebook("x = 1\ry = 2\nz = 3"), "cell 1 holds carriage returns"),
        (notebook("x = 1\0"), "cell 1 holds null characters"),
        (notebook("print(1)", "x = '\ud800'"), "cell 2 holds half a character"),
    ],
)
def test_what_is_no_notebook_in_python_is_said(text: str, says: str) -> None:
    with pytest.raises(Unparsed, match=says):
        found(text)


LINES = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\n\r"), max_size=8), min_size=1, max_size=5)


@given(
    cells=st.lists(st.tuples(LINES, st.booleans()), min_size=1, max_size=4),
    indent=st.sampled_from([None, 1, 4]),
    ascii_only=st.booleans(),
    data=st.data(),
)
def test_other_lines_keep_their_bytes(
    cells: Sequence[tuple[list[str], bool]], indent: int | None, ascii_only: bool, data: st.DataObject
) -> None:
    def source(lines: list[str], as_list: bool) -> Any:
        text = "\n".join(lines)
        return [line + "\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1]) if as_list else text

    made = [{"cell_type": "code", "outputs": ["\u00e9"], "source": source(*cell)} for cell in cells]
    text = json.dumps({"cells": made, "metadata": {}}, indent=indent, ensure_ascii=ascii_only)
    read = Notebook(text)
    assert [cell.texts for cell in read.cells] == [lines for lines, _ in cells]
    assert read.with_lines({cell.number: cell.texts for cell in read.cells}) == text
    number = data.draw(st.integers(1, len(cells)))
    new = data.draw(LINES)
    after = read.with_lines({number: new})
    assert sources(after) == ["\n".join(new if n == number else lines) for n, (lines, _) in enumerate(cells, 1)]
    start, end = read.cells[number - 1].source.start, read.cells[number - 1].source.end
    assert after.startswith(text[:start])
    assert after.endswith(text[end:])


MARIMO = """\
import marimo

app = marimo.App()


@app.cell
def _():
    import torch
    from torch import nn

    return nn, torch


@app.cell
def _(nn, torch):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Linear(4, 2).cuda()
    return device, model


@app.cell(hide_code=True)
def _(model, torch):
    x = torch.ones(3, 4).cuda()
    torch.cuda.synchronize()
    print(model(x).shape)
    return (x,)


if __name__ == "__main__":
    app.run()
"""


def migrated_python(source: str) -> str:
    python = kinds.handler(kinds.PYTHON)
    text = python.rewrite(source, NEWEST, RULES, unsafe=False, line_length=120).text
    assert python.rewrite(text, NEWEST, RULES, unsafe=False, line_length=120).text == text
    return text


def test_a_cell_of_marimo_has_a_device_of_its_own() -> None:
    """Cells see one another's names, but nothing of the module around them; `_` keeps a name to its cell."""
    text = migrated_python(MARIMO)
    assert "cuda" not in text
    cells = text.split("@app.cell")
    assert [cell.count("_device = torch.accelerator") for cell in cells] == [0, 0, 1, 1]
    assert "nn.Linear(4, 2).to(_device)" in cells[2]
    assert "torch.ones(3, 4).to(_device)" in cells[3]
    assert "torch.accelerator.synchronize()" in cells[3]


def test_parameters_of_other_functions_stay_unknown() -> None:
    source = "def f(torch):\n    torch.cuda.synchronize()\n"
    assert migrated_python(source) == source
    assert migrated_python("import marimo\n\n\n" + source) == "import marimo\n\n\n" + source


PERCENT = """\
# %% [markdown]
# # Train with `.cuda()`

# %%
# !pip install torch
import torch

# %% tags=["model"]
model = torch.nn.Linear(4, 2).cuda()

# %%
model(torch.ones(1, 4).cuda())
"""


def test_a_percent_script_keeps_its_cells() -> None:
    lines = migrated_python(PERCENT).splitlines()
    assert [line for line in lines if line.startswith("#")] == [
        line for line in PERCENT.splitlines() if line.startswith("#")
    ]
    assert lines[-1] == "model(torch.ones(1, 4).to(device))"
    assert lines.index('# %% tags=["model"]') > next(n for n, line in enumerate(lines) if line.startswith("device ="))


def test_an_import_goes_to_the_imports_and_not_to_what_installs() -> None:
    text = notebook(
        "!pip install transformers", "import os\nfrom transformers import pipeline", 'pipe = pipeline("x", device=0)'
    )
    cells = sources(migrate(text).text)
    assert cells[:2] == ["!pip install transformers", "import os\nimport torch\nfrom transformers import pipeline"]
