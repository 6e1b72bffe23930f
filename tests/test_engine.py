import multiprocessing
import os
import re
import signal
import sys
import time
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tpuport import engine, survey
from tpuport.errors import TpuportError
from tpuport.model import Finding, Outcome, Project, Rule, Safety, Severity, Span, Status
from tpuport.source import project

RULE = Rule("T1", "rule-one", "a", Severity.ERROR, Safety.SAFE, "m", "w", "r")
OTHER = Rule("T2", "rule-two", "a", Severity.ERROR, Safety.SAFE, "m", "w", "r")
LEFT = Finding("T1", "rule-one", "m", Span(1, 0, 1, 4), Severity.ERROR, Safety.MANUAL, reason="because")
TASK = engine.Task((RULE, OTHER), Project("2.11"), time_limit=30)


@dataclass(frozen=True, slots=True)
class Fix:
    """Stands for an edit; the engine only asks whether there is one."""


SAFE = Finding("T1", "rule-one", "m", Span(1, 0, 1, 4), Severity.ERROR, Safety.SAFE, edits=(Fix(),))  # type: ignore[arg-type]
UNSAFE = Finding("T1", "rule-one", "m", Span(1, 0, 1, 4), Severity.ERROR, Safety.UNSAFE, edits=(Fix(),))  # type: ignore[arg-type]

Matcher = Callable[[str, Project, Sequence[Rule]], list[Finding]]


@pytest.fixture
def matches(monkeypatch: pytest.MonkeyPatch) -> Callable[[Matcher], None]:
    """Put a function in the matcher's place."""

    def install(function: Matcher) -> None:
        module = types.ModuleType("tpuport.match")
        module.findings = function  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "tpuport.match", module)
        monkeypatch.setattr("tpuport.match", module, raising=False)

    return install


@pytest.fixture
def rewrites(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put a function in the rewriter's place that gives this text and these findings."""

    def install(text: str, remaining: tuple[Finding, ...] = (), error: Exception | None = None) -> None:
        def rewrite(*_: object, **__: object) -> object:
            if error is not None:
                raise error
            return types.SimpleNamespace(text=text, fixed=(SAFE,), remaining=remaining)

        module = types.ModuleType("tpuport.rewrite")
        module.rewrite = rewrite  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "tpuport.rewrite", module)
        monkeypatch.setattr("tpuport.rewrite", module, raising=False)

    return install


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "x.py"
    path.write_text("x.cuda()\n")
    return path


def fixing(**options: bool) -> engine.Task:
    return engine.Task((RULE, OTHER), Project("2.11"), fix=True, **options)  # type: ignore[arg-type]


def raising(error: BaseException) -> Matcher:
    def findings(*_: object) -> list[Finding]:
        raise error

    return findings


def test_a_survey_settles_files_with_nothing_to_match(tmp_path: Path) -> None:
    for name, content in {
        "plain.py": b"import os\n",
        "cuda.py": b"class Net:\n  def cuda(self): ...\n",
        "env.py": b"os.environ['CUDA_VISIBLE_DEVICES'] = '0'\n",
        "select.py": b"torch.cuda.set_device(1)\n",
        "binary.py": b"\0\1",
        "big.py": b"#" * 200,
    }.items():
        (tmp_path / name).write_bytes(content)
    given = Outcome(tmp_path / "n.ipynb", Status.SKIPPED, "a notebook")
    found = survey.survey([given, *sorted(tmp_path.iterdir())], 100)
    assert {item.name if isinstance(item, Path) else (item.path.name, item.status) for item in found.items} == {
        ("n.ipynb", Status.SKIPPED),
        ("big.py", Status.SKIPPED),
        ("binary.py", Status.FAILED),
        ("plain.py", Status.UNCHANGED),
        "cuda.py",
        "env.py",
        "select.py",
    }
    assert found.facts.cuda_methods == ("Net",)
    assert found.facts.defers_cuda
    assert found.facts.selects_device


def test_lint_lists_findings(file: Path, matches: Callable[[Matcher], None]) -> None:
    matches(lambda *_: [SAFE, LEFT])
    assert engine.settle(file, TASK) == Outcome(file, Status.FINDINGS, findings=(SAFE, LEFT))
    matches(lambda *_: [])
    assert engine.settle(file, TASK) == Outcome(file, Status.UNCHANGED)


def test_a_fix_gives_old_and_new_text(
    file: Path, matches: Callable[[Matcher], None], rewrites: Callable[..., None]
) -> None:
    matches(lambda *_: [SAFE, LEFT])
    rewrites("x.to(device)\n", (LEFT,))
    expected = Outcome(file, Status.CHANGED, findings=(LEFT,), fixed=(SAFE,), old="x.cuda()\n", new="x.to(device)\n")
    assert engine.settle(file, fixing()) == expected
    assert file.read_text() == "x.cuda()\n"


def test_without_a_fix_to_apply_the_rewriter_is_not_called(
    file: Path, matches: Callable[[Matcher], None], rewrites: Callable[..., None]
) -> None:
    rewrites("", error=AssertionError("called"))
    for findings in ([LEFT], [UNSAFE]):
        matches(lambda *_, findings=findings: findings)  # type: ignore[misc]
        assert engine.settle(file, fixing()).status is Status.FINDINGS
    assert engine.settle(file, fixing(unsafe=True)).status is Status.FAILED


def test_a_rewrite_that_changes_nothing_is_no_change(
    file: Path, matches: Callable[[Matcher], None], rewrites: Callable[..., None]
) -> None:
    matches(lambda *_: [SAFE])
    rewrites("x.cuda()\n", (SAFE,))
    assert engine.settle(file, fixing()) == Outcome(file, Status.FINDINGS, findings=(SAFE,))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (SyntaxError("invalid syntax", ("x.py", 7, 1, "")), "syntax error, line 7: invalid syntax"),
        (RecursionError(), "nested too deeply"),
        (MemoryError(), "too large for the memory"),
        (TpuportError("the output does not parse"), "the output does not parse"),
        (KeyError("x"), "a bug in tpuport .*: KeyError: 'x'; please report"),
    ],
)
def test_what_goes_wrong_costs_the_file_alone(
    file: Path, matches: Callable[[Matcher], None], error: Exception, reason: str
) -> None:
    matches(raising(error))
    outcome = engine.settle(file, TASK)
    assert outcome.status is Status.FAILED
    assert re.match(reason, outcome.reason)


def test_a_rules_bug_names_the_rule(file: Path, tmp_path: Path, matches: Callable[[Matcher], None]) -> None:
    check = tmp_path / "checks" / "device_kw.py"
    check.parent.mkdir()
    check.write_text("def findings(*_):\n    return [][1]\n")
    namespace: dict[str, Matcher] = {}
    exec(compile(check.read_text(), str(check), "exec"), namespace)
    matches(namespace["findings"])
    assert "rule device_kw" in engine.settle(file, TASK).reason


def test_debug_lets_a_bug_through(file: Path, matches: Callable[[Matcher], None]) -> None:
    matches(raising(KeyError("x")))
    with pytest.raises(KeyError):
        engine.settle(file, engine.Task((RULE,), Project("2.11"), debug=True))


def test_a_file_that_takes_too_long_fails(file: Path, matches: Callable[[Matcher], None]) -> None:
    def forever(*_: object) -> list[Finding]:
        while True:
            try:
                time.sleep(0.01)
            except Exception:  # noqa: BLE001 - as careless as a rule could be
                continue

    matches(forever)
    handler = signal.getsignal(signal.SIGALRM)
    outcome = engine.settle(file, engine.Task((RULE,), Project("2.11"), time_limit=0.05))
    assert outcome.status is Status.FAILED
    assert "longer than 0.05 s" in outcome.reason
    assert signal.getsignal(signal.SIGALRM) is handler


def test_an_outer_alarm_is_kept(file: Path, matches: Callable[[Matcher], None]) -> None:
    matches(lambda *_: [])
    handler = signal.signal(signal.SIGALRM, lambda *_: None)
    remaining, interval = signal.setitimer(signal.ITIMER_REAL, 100)
    try:
        engine.settle(file, TASK)
        assert 90 < signal.getitimer(signal.ITIMER_REAL)[0] <= 100
    finally:
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, remaining, interval)


def test_per_file_ignores_take_rules_away(file: Path, matches: Callable[[Matcher], None]) -> None:
    seen: list[list[str]] = []

    def findings(_source: str, _project: Project, rules: Sequence[Rule]) -> list[Finding]:
        seen.append([rule.code for rule in rules])
        return []

    matches(findings)
    for pattern in ("x.py", "tests/*"):
        task = engine.Task(
            (RULE, OTHER),
            Project("2.11"),
            root=file.parent,
            per_file_ignores=((pattern, frozenset({"T1"})),),
        )
        engine.settle(file, task)
    assert seen == [["T2"], ["T1", "T2"]]


def test_outcomes_keep_the_order_of_files(tmp_path: Path, matches: Callable[[Matcher], None]) -> None:
    matches(lambda source, *_: [LEFT] if "1" in source else [])
    items = many(tmp_path, 30)
    alone = list(engine.run(items, TASK, 1))
    assert [outcome.path for outcome in alone] == [item.path if isinstance(item, Outcome) else item for item in items]
    assert list(engine.run(items, TASK, 2)) == alone
    assert {outcome.status for outcome in alone} == {Status.SKIPPED, Status.FINDINGS, Status.UNCHANGED}


def test_a_worker_that_dies_costs_one_file(tmp_path: Path, matches: Callable[[Matcher], None]) -> None:
    def deadly(source: str, *_: object) -> list[Finding]:
        if source.startswith("cuda = 13"):
            os._exit(9)
        return [LEFT]

    matches(deadly)
    items = [item for item in many(tmp_path, 30) if isinstance(item, Path)]
    outcomes = list(engine.run(items, TASK, 2))
    assert [outcome.path for outcome in outcomes] == items
    failed = [outcome for outcome in outcomes if outcome.status is Status.FAILED]
    assert [outcome.path.name for outcome in failed] == ["x13.py"]
    assert "killed the process" in failed[0].reason


@pytest.mark.timeout(120)
def test_nobody_reading_on_ends_the_workers(tmp_path: Path, matches: Callable[[Matcher], None]) -> None:
    def endless(source: str, *_: object) -> list[Finding]:
        if source != "cuda = 0\n":
            time.sleep(3600)
        return []

    matches(endless)
    before = set(multiprocessing.active_children())
    items = [item for item in many(tmp_path, 4) if isinstance(item, Path)]
    outcomes = engine.run(items, replace(TASK, time_limit=0), 2)
    assert next(outcomes).path == items[0]
    outcomes.close()  # type: ignore[attr-defined]
    assert set(multiprocessing.active_children()) == before


def many(directory: Path, number: int) -> list[Path | Outcome]:
    items: list[Path | Outcome] = []
    for at in range(number):
        path = directory / f"x{at}.py"
        path.write_text(f"cuda = {at}\n")
        items += [path, Outcome(directory / f"n{at}.ipynb", Status.SKIPPED, "a notebook")]
    return items


def test_a_survey_in_workers_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [
        b"torch.cuda.set_device(0)\n",
        b"x = 1\n",
        b"\0",
        b"class A:\n    def cuda(self): return B()\n",
        b"p = Process()\n",
    ]
    for number in range(60):
        (tmp_path / f"f{number:02}.py").write_bytes(texts[number % len(texts)])
    found = sorted(tmp_path.iterdir())
    alone = survey.survey(found, jobs=1)
    monkeypatch.setattr(survey, "WORTH_SURVEYORS", 10)
    monkeypatch.setattr(survey, "_SURVEYED", 7)
    assert survey.survey(found, jobs=2) == alone
    monkeypatch.setattr(survey, "_look_at_chunk", _dies)
    assert survey.survey(found, jobs=2) == alone


def _dies(*_: object) -> None:
    os._exit(1)


@pytest.mark.parametrize(
    ("source", "selects"),
    [
        ("torch.cuda.set_device(0)", True),
        ("(torch.cuda.set_device  # why\n)(0)", True),
        ("with torch.cuda.device (1): pass", True),
        ("from torch.cuda import device", True),
        ("device_index = 1\nf(device_index)", False),
        ("torch.cuda.device_count()", False),
        ("x: torch.cuda.device = make()", False),
        ("set_device = 1  # set_device(1)", False),
    ],
)
def test_what_selects_a_device(source: str, selects: bool) -> None:
    assert project.selects_device(source.encode()) is selects
