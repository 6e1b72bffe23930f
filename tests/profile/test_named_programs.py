"""What the command line names: a script, a module with -m, a notebook; and arguments that miss their `--`."""

import json
from pathlib import Path

import pytest

from tests.profile.command import SCRIPTS, profile, tpuport
from tpuport.errors import UsageError
from tpuport.profile.layout import STDOUT_LOG
from tpuport.profile.locate import find_module
from tpuport.profile.notebooks import read_cells

QUICK = ("--device", "cpu", "--mode", "eager", "--steps", "2", "--warmup", "1", "--timeout", "60")


def notebook(folder: Path, *cells: str, **extra: object) -> Path:
    path = folder / "book.ipynb"
    code = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    path.write_text(json.dumps({"cells": code, "metadata": {}, "nbformat": 4, **extra}), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("source", "python"),
    [
        ("%matplotlib inline\nx = 1", "pass\nx = 1"),
        ("if x:\n    !pip install \\\n      torch\ny = 2", "if x:\n    pass\n\ny = 2"),
        ("x = (7\n% 4)", "x = (7\n% 4)"),
        ("!echo don't (\ntext = '''\n%keep\n'''", "pass\ntext = '''\n%keep\n'''"),
        ("files = !ls\nx?\n?x", "pass\npass\npass"),
        ("\n%%time\nx = 1", "\npass\nx = 1"),
        ("%%bash\necho 'x", "pass\n"),
        ("x = = 1", "x = = 1"),
        ("%time\nx = = 1", "pass\nx = = 1"),
        ("pip install torch\ny = 2", "pass\ny = 2"),
        ("", ""),
    ],
)
def test_a_cell_keeps_its_lines_and_loses_what_only_ipython_runs(tmp_path: Path, source: str, python: str) -> None:
    (cell,) = read_cells(notebook(tmp_path, source))
    assert cell.python == python
    changed = {
        number
        for number, (before, after) in enumerate(zip(source.split("\n"), python.split("\n"), strict=True), 1)
        if before != after
    }
    assert {item.line for item in cell.left_out} == changed


def test_cells_count_those_of_text(tmp_path: Path) -> None:
    path = notebook(tmp_path, "x = 1")
    document = json.loads(path.read_text())
    document["cells"].insert(0, {"cell_type": "markdown", "source": "Title"})
    path.write_text(json.dumps(document))
    assert [cell.number for cell in read_cells(path)] == [2]


@pytest.mark.parametrize("text", ["{", "[]", '{"worksheets": []}'])
def test_what_is_no_notebook_is_said(tmp_path: Path, text: str) -> None:
    path = tmp_path / "book.ipynb"
    path.write_text(text)
    with pytest.raises(UsageError, match="not a notebook"):
        read_cells(path)


def test_a_notebook_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = notebook(tmp_path, "x = 1")
    path.write_text(path.read_text(), encoding="utf-8-sig")
    assert [cell.python for cell in read_cells(path)] == ["x = 1"]


def test_a_notebook_in_another_language_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a notebook in julia, not in Python"):
        read_cells(notebook(tmp_path, "x", metadata={"language_info": {"name": "julia"}}))


def test_a_notebook_runs_cell_by_cell_and_its_lines_are_named(tmp_path: Path) -> None:
    options = ("--device", "emulated-tpu", "--mode", "compiled", "--steps", "2", "--warmup", "1")
    run = profile(tmp_path, "notebook.ipynb", *options)
    assert run.result.code == 0, run.result.err
    (row,) = run.result.document["graph_breaks"]["rows"]
    assert row["place"]["file"] == f"{SCRIPTS / 'notebook.ipynb'}:cell 5"
    assert (row["place"]["line"], row["source"]) == (8, "if x.sum() > 1e9:")
    (remark,) = run.row("modes", "compiled")["remarks"]
    assert "`%matplotlib inline`, `!pip install torch`" in remark["text"]
    assert remark["place"]["file"].endswith("notebook.ipynb:cell 2")


def test_an_error_in_a_notebook_names_its_cell(tmp_path: Path) -> None:
    run = profile(tmp_path, notebook(tmp_path, "x = 1", "\nprint(display(x))\nraise ValueError(x)"), *QUICK)
    assert run.result.code == 3
    assert run.failure()["what"] == "ValueError: 1 (before its first step)"
    assert run.failure()["place"] == {"file": "book.ipynb:cell 2", "line": 3, "function": "module"}
    assert (run.session / "eager" / STDOUT_LOG).read_text() == "1\nNone\n"


def test_a_module_sees_what_python_would_show_it(tmp_path: Path) -> None:
    session = tmp_path / "session"
    result = tpuport(
        "profile", "-m", "package.train", *QUICK, "--json", "-o", session, "--", "--batch", "7", cwd=SCRIPTS
    )
    assert result.code == 0, result.err
    assert (session / "eager" / STDOUT_LOG).read_text() == "__main__ package package.train True 7\n"
    shown = tpuport("report", session, cwd=tmp_path)
    assert shown.out.startswith("tpuport profile -m package.train --batch 7\n")


def test_the_file_of_a_module_is_found_without_importing_it(tmp_path: Path) -> None:
    package = tmp_path / "pack"
    package.mkdir()
    for name in ("__init__", "__main__", "train"):
        (package / f"{name}.py").write_text("raise RuntimeError('imported')\n")
    assert find_module("pack.train", tmp_path) == package / "train.py"
    assert find_module("pack", tmp_path) == package / "__main__.py"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pack.missing", "there is no module 'missing' in the package pack"),
        ("absent", "there is no module 'absent' in "),
        ("pack.train.more", "pack.train is a module, not a package: it has no 'more'"),
        ("pack", "pack is a package without a __main__"),
        ("math", "math is not a module of Python source|there is no module 'math'"),
    ],
)
def test_a_module_that_is_not_there_is_said(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "pack" / "train.py").write_text("")
    with pytest.raises(UsageError, match=message):
        find_module(name, tmp_path)


@pytest.mark.parametrize(
    ("given", "separated"),
    [
        (["x.py", "--epochs", "2"], "tpuport profile x.py -- --epochs 2"),
        (["x.py", "--epochs", "2", "--steps", "3"], "tpuport profile x.py --steps 3 -- --epochs 2"),
        (["x.py", "-e", "2", "--", "more"], "tpuport profile x.py -- -e 2 more"),
        (["-m", "pack.train", "--epochs=2"], "tpuport profile -m pack.train -- --epochs=2"),
        (["--epochs", "2", "x.py"], "tpuport profile SCRIPT -- ARG..."),
    ],
)
def test_arguments_without_their_separator_are_refused_with_the_command_to_type(
    tmp_path: Path, given: list[str], separated: str
) -> None:
    result = tpuport("profile", *given, cwd=tmp_path)
    assert result.code == 2
    assert "tpuport profile has no option -" in result.err
    assert " ".join(result.err.split()).endswith(f"The script's own arguments come after `--`: {separated}")


def test_a_command_that_names_nothing_is_refused(tmp_path: Path) -> None:
    result = tpuport("profile", cwd=tmp_path)
    assert (result.code, "nothing to profile was named" in result.err) == (2, True)
