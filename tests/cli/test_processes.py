"""The command line as a user's shell sees it: in a process of its own, with the real core."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc to see when workers run")

COMMAND = [sys.executable, "-m", "tpuport"]


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("import torch\n\nx = torch.ones(2).cuda()\n")
    return tmp_path


def test_lint_imports_neither_libcst_nor_torch_nor_what_a_short_run_does_not_need(tree: Path) -> None:
    script = (
        "import sys\nfrom tpuport.cli.app import main\nsys.argv = ['tpuport', 'lint', 'train.py']\n"
        "try:\n    main()\nexcept SystemExit as ended:\n    print('code', ended.code)\n"
        "names = ('libcst', 'torch', 'numpy', 'multiprocessing', 'pathspec', 'tpuport.rewrite')\n"
        "print('loaded', [name for name in names if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tree, capture_output=True, text=True, check=True)
    assert "train.py:3:" in done.stdout
    assert "code 1" in done.stdout
    assert "loaded []" in done.stdout


def test_a_reader_that_goes_away_is_no_error(tree: Path) -> None:
    for number in range(300):
        (tree / f"x{number}.py").write_text("import torch\n" + "x = torch.ones(2).cuda()\n" * 30)
    process = subprocess.Popen(
        [*COMMAND, "lint", "."], cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read()
    process.stderr.close()
    process.wait(timeout=60)
    assert "Traceback" not in said
    assert "Exception ignored" not in said


@linux_only
def test_an_interrupt_ends_all_of_it_soon_and_changes_nothing(tree: Path) -> None:
    for number in range(60):
        (tree / f"x{number}.py").write_text("import torch\n" + "x = torch.ones(2).cuda()\n" * 3000)
    before = {file: file.read_bytes() for file in tree.iterdir()}
    process = subprocess.Popen(
        [*COMMAND, "migrate", ".", "--jobs", "2"],
        cwd=tree,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
    )
    try:
        wait_for_workers(process)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=30)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode not in (0, 1)
    assert "Traceback" not in said
    assert {file: file.read_bytes() for file in tree.iterdir()} == before


def wait_for_workers(process: subprocess.Popen[str]) -> None:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + 30
    while not children.read_text() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert process.poll() is None


def test_migrate_then_lint_then_migrate_again(tree: Path) -> None:
    assert run("migrate", "train.py", cwd=tree).returncode == 0
    text = (tree / "train.py").read_text()
    assert ".cuda()" not in text
    again = run("migrate", "train.py", cwd=tree)
    assert again.returncode == 0
    assert (tree / "train.py").read_text() == text
    assert run("lint", "train.py", cwd=tree).returncode == 0


def test_rules_are_listed(tree: Path) -> None:
    done = run("rules", cwd=tree)
    assert done.returncode == 0
    assert done.stdout


def test_a_training_repository_takes_the_whole_path(tmp_path: Path) -> None:
    fixture = Path(__file__).parents[2] / "fixtures/tiny_trainer"
    shutil.copytree(fixture, tmp_path / "repo")
    report = json.loads(run("migrate", "repo", "--json", cwd=tmp_path).stdout)
    assert report["failures"] == []
    assert report["summary"]["rewritten"] > 20
    left = {(finding["file"], finding["line"], finding["code"]) for finding in report["findings"]}
    linted = json.loads(run("lint", "repo", "--json", "--severity", "error", cwd=tmp_path).stdout)["findings"]
    assert {(finding["file"], finding["line"], finding["code"]) for finding in linted} <= left
    assert all(not finding["fixable"] or finding["safety"] == "unsafe" for finding in linted)
    again = json.loads(run("migrate", "repo", "--json", "--strict", cwd=tmp_path).stdout)
    assert again["changed"] == []
    assert again["failures"] == []
