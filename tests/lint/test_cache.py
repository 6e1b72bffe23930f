import io
import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.lint.conftest import Lint
from tpuport import cache, engine, survey
from tpuport.kinds import python
from tpuport.model import Severity

COUNT = 60


@pytest.fixture
def many(project: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enough files for the cache to be worth it, and a cache of their own."""
    for number in range(COUNT):
        (project / f"m{number:02}.py").write_text(f"import torch\nx{number} = y.cuda()\n")
    (project / "ignored.py").write_text("x.cuda()  # tpuport: ignore[TP101] why\n")
    monkeypatch.setenv("TPUPORT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    return project


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that are looked at, as they are."""
    names: list[str] = []
    real = engine._settle

    def spy(path: Path, task: engine.Task, raw: bytes | None) -> object:
        names.append(path.name)
        return real(path, task, raw)

    monkeypatch.setattr(engine, "_settle", spy)
    return names


def run(lint: Lint, *arguments: str) -> str:
    return lint(".", "--jobs", "1", "--severity", "info", "--json", *arguments).out


def test_a_second_run_looks_at_nothing_and_says_the_same(many: Path, lint: Lint, settled: list[str]) -> None:
    first = run(lint)
    assert len(settled) == COUNT + 2
    settled.clear()
    assert run(lint) == first
    assert settled == []
    assert lint(".", "--jobs", "1").out == lint(".", "--jobs", "1", "--no-cache").out
    assert len(settled) == COUNT + 2
    assert many


def test_what_other_files_hold_back_is_known_too(many: Path, lint: Lint, settled: list[str]) -> None:
    source = "import torch_xla.core.xla_model as xm\n\n\ndef {name}(x):\n    return xm.{call}\n"
    (many / "model.py").write_text(source.format(name="place", call="xla_device()"))
    (many / "sums.py").write_text(source.format(name="total", call="all_to_all(x, 0, 1, 2)"))
    (many / "main.py").write_text("import model\nimport sums\n")
    first = run(lint)
    assert settled.count("model.py") == 2
    assert "sums.py:5" in first
    settled.clear()
    assert run(lint) == first
    assert settled == []


def test_only_a_changed_text_is_looked_at_and_times_and_names_do_not_matter(
    many: Path, lint: Lint, settled: list[str]
) -> None:
    run(lint)
    settled.clear()
    status = (many / "m05.py").stat()
    (many / "m05.py").write_text("import torch\nx5 = z.cuda()\n")
    os.utime(many / "m05.py", ns=(status.st_atime_ns, status.st_mtime_ns))
    os.utime(many / "m06.py")
    (many / "m07.py").rename(many / "moved.py")
    run(lint)
    assert settled == ["m05.py"]


@pytest.mark.parametrize(
    "change",
    [
        lambda project: (project / "tpuport.toml").write_text('min-torch = "2.6"\n'),
        lambda project: (project / "tpuport.toml").write_text('ignore = ["TP2"]\n'),
        lambda project: (project / "net.py").write_text("class Net:\n    def cuda(self): return wire()\n"),
    ],
    ids=["oldest torch", "rules", "facts of the run"],
)
def test_what_else_findings_depend_on(many: Path, lint: Lint, settled: list[str], change: object) -> None:
    run(lint)
    settled.clear()
    change(many)  # type: ignore[operator]
    run(lint)
    assert len(settled) >= COUNT


def test_rules_left_out_for_some_files(many: Path, lint: Lint, settled: list[str]) -> None:
    run(lint)
    (many / "tpuport.toml").write_text('[per-file-ignores]\n"m0*" = ["TP101"]\n')
    settled.clear()
    run(lint)
    assert sorted(settled) == [f"m0{number}.py" for number in range(10)]


def test_an_upgrade_begins_anew(many: Path, lint: Lint, settled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    run(lint)
    settled.clear()
    cache._state.cache_clear()
    monkeypatch.setattr("tpuport.__version__", "99")
    run(lint)
    cache._state.cache_clear()
    assert len(settled) == COUNT + 2
    assert many


def files() -> list[Path]:
    return list(cache.directory().iterdir())


@pytest.mark.parametrize("content", [b"", b"junk", pickle.dumps(1), pickle.dumps(({}, [])), pickle.dumps((1, 2, 3))])
def test_a_broken_cache_counts_as_none(many: Path, lint: Lint, content: bytes) -> None:
    first = run(lint)
    (file,) = files()
    file.write_bytes(content)
    assert run(lint) == first
    assert file.stat().st_size > 1000
    assert many


class _Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("owned",)


def test_a_cache_cannot_run_code(many: Path, lint: Lint) -> None:
    first = run(lint)
    (file,) = files()
    file.write_bytes(pickle.dumps(({b"x": _Evil()}, {})))
    assert run(lint) == first
    assert not (many / "owned").exists()


def test_a_cache_that_cannot_be_written_is_no_failure(many: Path, lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    (many / "file").touch()
    monkeypatch.setenv("TPUPORT_CACHE_DIR", str(many / "file/below"))
    assert json.loads(run(lint))["summary"]["files"] == COUNT + 4


def test_failures_are_not_kept(many: Path, lint: Lint, settled: list[str]) -> None:
    (many / "broken.py").write_text("cuda(\n")
    run(lint)
    settled.clear()
    run(lint)
    assert settled == ["broken.py"]


def test_a_short_run_and_text_from_standard_input_leave_no_cache(many: Path, lint: Lint) -> None:
    lint("m00.py", "m01.py")
    assert files() == []
    assert many


def test_runs_at_once_agree(many: Path) -> None:
    command = [sys.executable, "-m", "tpuport", "lint", ".", "--json", "--jobs", "1"]
    started = [subprocess.Popen(command, cwd=many, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    outputs = {process.communicate(timeout=60) for process in started}
    assert len(outputs) == 1
    assert next(iter(outputs))[1] == b""
    assert [file.suffix for file in files()] == [".pickle"]


def test_what_nobody_used_for_long_goes(many: Path, lint: Lint) -> None:
    old = cache.directory() / "old.pickle"
    old.write_bytes(b"")
    os.utime(old, (time.time() - 40 * 24 * 3600,) * 2)
    run(lint)
    assert old not in files()
    assert many


@pytest.mark.parametrize(
    ("platform", "variable", "value", "expected"),
    [
        ("linux", "XDG_CACHE_HOME", "/x", "/x/tpuport"),
        ("linux", "HOME", "/h", "/h/.cache/tpuport"),
        ("darwin", "HOME", "/h", "/h/Library/Caches/tpuport"),
        ("win32", "LOCALAPPDATA", "/l", "/l/tpuport"),
    ],
)
def test_where_it_lies(
    monkeypatch: pytest.MonkeyPatch, platform: str, variable: str, value: str, expected: str
) -> None:
    for name in ("TPUPORT_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert cache.directory() == Path(expected)


def test_what_workers_survey_is_known_later(
    many: Path, lint: Lint, settled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey, "WORTH_SURVEYORS", 10)
    first = lint(str(many), "--jobs", "2")
    settled.clear()
    looked: list[bytes] = []
    monkeypatch.setattr(python, "is_candidate", looked.append)
    assert lint(str(many), "--jobs", "1") == first
    assert (settled, looked) == ([], [])


class Member:
    """Pickles as the first releases of Python 3.11 pickle a member of an enum."""

    def __init__(self, owner: type, name: str) -> None:
        self.of = (owner, name)

    def __reduce__(self) -> tuple[object, tuple[type, str]]:
        return getattr, self.of


def test_members_of_enums_are_read_in_the_form_of_early_python_3_11() -> None:
    written = pickle.dumps(Member(Severity, "ERROR"), protocol=5)
    assert cache._Unpickler(io.BytesIO(written)).load() is Severity.ERROR


@pytest.mark.parametrize(("owner", "name"), [(Severity, "mro"), (Severity, "__init__"), (cache.Entry, "_make")])
def test_other_attributes_are_not_read(owner: type, name: str) -> None:
    written = pickle.dumps(Member(owner, name), protocol=5)
    with pytest.raises((pickle.UnpicklingError, KeyError)):
        cache._Unpickler(io.BytesIO(written)).load()
