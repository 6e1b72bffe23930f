"""Whatever a file holds and wherever it lies, it comes to an outcome that is stated."""

import json
import os
from pathlib import Path

import pytest

from tests.benchmarks import mutations
from tests.lint.conftest import Lint

COUNT = 450


@pytest.mark.parametrize("part", range(3))
def test_broken_texts_come_to_an_outcome(part: int) -> None:
    for name, raw in mutations.cases(COUNT // 3, seed=part):
        said = mutations.fault(mutations.settled(name, raw))
        assert not said, f"{name}, seed {part}: {said}"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_odd_files_are_all_accounted_for(project: Path, lint: Lint) -> None:
    os.mkfifo(project / "pipe.py")
    (project / "loop.py").symlink_to("loop.py")
    (project / "circle").symlink_to(".")
    (project / "out.py").symlink_to("/etc/passwd")
    (project / "directory.py").mkdir()
    (project / "nul.py").write_bytes(b"cuda\0")
    (project / "bad.py").write_bytes(b"# cuda \xff\n")
    (project / "deep.py").write_text("x = " + "(" * 5000 + "cuda" + ")" * 5000)
    (project / "huge.py").write_text("# cuda\n" * 1_000_000)
    (project / "link.py").symlink_to("train.py")
    done = lint(".", "--json")
    assert done.code == 2
    content = json.loads(done.out)
    reasons = {entry["file"]: entry["reason"] for key in ("failures", "skipped") for entry in content[key]}
    assert set(reasons) == {"pipe.py", "loop.py", "out.py", "nul.py", "bad.py", "deep.py", "huge.py"}
    assert all(reasons.values())
    assert content["summary"]["files"] == len(reasons) + 3
