"""`migrate --annotate` and `migrate --report`, on the fixture repository."""

import shutil
from pathlib import Path

import pytest

from tests.command import tpuport

FIXTURE = Path(__file__).parents[2] / "fixtures" / "tiny_trainer"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny_trainer"
    shutil.copytree(FIXTURE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def migrate(folder: Path, *arguments: str) -> str:
    done = tpuport("migrate", "--allow-dirty", *arguments, ".", cwd=folder)
    assert done.code == 0, done.err
    return done.out


def test_sites_that_are_left_get_a_comment_once(checkout: Path) -> None:
    migrate(checkout, "--annotate")
    once = {path: path.read_text() for path in checkout.rglob("*.py")}
    comments = [line for text in once.values() for line in text.splitlines() if "# TODO(tpuport): TP" in line]
    assert any("TP217" in comment for comment in comments)
    assert "0 of 10 files changed" in migrate(checkout, "--annotate")
    assert {path: path.read_text() for path in checkout.rglob("*.py")} == once


def test_account_tells_what_changed_and_what_is_left_by_effort(checkout: Path) -> None:
    migrate(checkout, "--report", "PORT.md")
    account = (checkout / "PORT.md").read_text()
    headings = [line for line in account.splitlines() if line.startswith("## ")]
    assert headings[0] == "## Rewritten"
    assert headings[-1] == "## Next"
    efforts = [line.split()[-2] for line in headings if line.startswith("## Left for you")]
    assert efforts == sorted(efforts, key=["low", "medium", "high"].index)
    assert "| TP101 cuda-call |" in account
    assert "bench.py:" in account


def test_account_of_a_preview_says_so(checkout: Path) -> None:
    migrate(checkout, "--diff", "--report", "PORT.md")
    assert "files would change" in (checkout / "PORT.md").read_text()
    assert ".cuda()" in (checkout / "evaluate.py").read_text()
