"""The tool itself, over a made-up folder: what it counts, and that each kind of fault would be seen."""

import json
from pathlib import Path

import pytest

from tests.corpus import detector, others, trial
from tests.corpus.__main__ import main
from tpuport.model import Finding, Outcome, Safety, Severity, Span, Status

TRAIN = "import torch\n\nmodel = torch.nn.Linear(2, 2).cuda()  # the model\n"


@pytest.fixture
def checkouts(tmp_path: Path) -> Path:
    for name, files in {
        "one": {"train.py": TRAIN, "plain.py": "x = 1\n", "old.py": "print 'cuda'\n"},
        "two": {"dos.py": "\ufeff" + TRAIN.replace("\n", "\r\n")},
    }.items():
        (tmp_path / name / ".git").mkdir(parents=True)
        for file, text in files.items():
            (tmp_path / name / file).write_bytes(text.encode())
    return tmp_path


def kinds(source: str) -> list[str]:
    return [construct.kind for construct in detector.constructs(source)]


def looked_at(old: str, new: str, tmp_path: Path, outcome: Outcome | None = None) -> list[trial.Fault]:
    path = tmp_path / "a.py"
    path.write_bytes(new.encode())
    return list(trial._look(outcome or Outcome(path, Status.UNCHANGED), old.encode(), tmp_path))


def test_folder_of_checkouts_stands_for_each_of_them(checkouts: Path) -> None:
    assert [path.name for path in trial.checkouts([checkouts])] == ["one", "two"]
    assert trial.checkouts([checkouts / "one"]) == [checkouts / "one"]


def test_checkouts_are_only_read(checkouts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in checkouts.rglob("*.py")}
    assert main([str(checkouts)]) == 0
    assert {path: path.read_bytes() for path in checkouts.rglob("*.py")} == before
    table = capsys.readouterr().out
    assert "unparsable: one/old.py:0: syntax error" in table
    assert [line.split()[:4] for line in table.splitlines() if line.startswith(("one", "two"))] == [
        ["one", "3", "1", "1"],
        ["two", "1", "1", "1"],
    ]


@pytest.mark.parametrize(
    ("kind", "old", "new", "fault"),
    [
        ("yaml", "a: 1\nb: cuda\n", "a: 1\nb: tpu\n", ""),
        ("yaml", "a: 1\nb: cuda\n", "a: 1\nb: {\n", "broken"),
        ("yaml", "a: &x cuda\nb: *x\n", "a: &x tpu\nb: *x\n", "broken"),
        ("json", '{"a": 1}', '{"b": 1}', "broken"),
        ("json", "{a}", "{b", ""),
        ("toml", "a = 1\n", "a = 1\nb = 2\n", ""),
        ("toml", "a = 1 # x\n", "a = \n", "broken"),
        ("shell", "a\n", "if a; then\n", "broken"),
        ("dockerfile", "# x\nFROM a\n", "FROM b\n", "comments"),
    ],
)
def test_faults_of_files_that_are_no_python_are_seen(kind: str, old: str, new: str, fault: str) -> None:
    assert [found for found, _ in others.faults(kind, old, new)] == ([fault] if fault else [])


def test_checkout_without_python_is_empty(tmp_path: Path) -> None:
    (tmp_path / "lua").mkdir()
    result = trial.run(tmp_path / "lua", tmp_path / "copy")
    assert (result.files, result.share, result.failed) == (0, None, False)


def test_json_and_diffs(checkouts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(checkouts / "one"), "--json", "--diffs", str(tmp_path / "diffs")])
    [one] = json.loads(capsys.readouterr().out)
    assert (one["name"], one["rewritten"], one["share"], one["silent"], one["unparsable"]) == ("one", 1, 1.0, 0, 1)
    assert "-model = torch.nn.Linear(2, 2).cuda()  # the model" in (tmp_path / "diffs" / "one.diff").read_text()


def test_missing_folder_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([str(tmp_path / "nowhere")])
    assert "no such folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch\ntorch.cuda.empty_cache()", ["torch.cuda.empty_cache"]),
        ("import torch as t\nt.cuda.amp.autocast", ["torch.cuda.amp.autocast"]),
        ("from torch.cuda.amp import autocast as a\na()", ["torch.cuda.amp.autocast"]),
        ("import torch.backends.cudnn as cudnn\ncudnn.benchmark = True", ["torch.backends.cudnn.benchmark"]),
        ("x.cuda(0); y.is_cuda", [".cuda()", ".is_cuda"]),
        ("d = 'cuda'; e = f'cuda:{i}'; b = 'nccl'", ["string", "string", "string"]),
        ("from own.parallel import DataParallel\nDataParallel(m); add('--cuda', dest='cuda')", []),
        ("import model\nmodel = model.Net()\nmodel.cuda()", [".cuda()"]),
        ("from apex import amp", ["import"]),
        ("import torch; DataParallel(m); DDP(m, device_ids=[0])", ["DataParallel", "device_ids"]),
        ("'cuda'\nd = {'cuda': 1}; d['cuda']; print('on cuda now', f'on cuda:{i}', args.cuda, '--cuda')", []),
        ("import pycuda.driver as cuda\ncuda.init()", ["import"]),
        ("from nvidia.modelling import Net\nfrom nvidia.dali import fn", ["import"]),
        ("x.to(device); torch = 1; is_available()", []),
    ],
)
def test_detector(source: str, expected: list[str]) -> None:
    assert kinds(source) == expected


def test_construct_with_no_finding_is_silent(tmp_path: Path) -> None:
    [fault] = looked_at("x.cuda()\n", "x.cuda()\n", tmp_path)
    assert (fault.kind, fault.line, fault.what) == ("silent", 1, ".cuda(): x.cuda()")


def test_construct_with_a_finding_is_not_silent(tmp_path: Path) -> None:
    finding = Finding("TPU000", "some-rule", "", Span(1, 0, 1, 8), Severity.INFO, Safety.MANUAL)
    outcome = Outcome(tmp_path / "a.py", Status.FINDINGS, findings=(finding,))
    assert not looked_at("x.cuda()\n", "x.cuda()\n", tmp_path, outcome)


def test_guard_speaks_for_its_body_only_if_it_is_new(tmp_path: Path) -> None:
    guarded = "import torch\nif torch.cuda.is_available():\n    torch.cuda.init()\n"
    assert not looked_at("import torch\ntorch.cuda.init()\n", guarded, tmp_path)
    assert [fault.line for fault in looked_at(guarded, guarded, tmp_path)] == [2, 3]


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("x = 1\n", "x = = 1\n", "broken"),
        ("def f():\n    return 1\n", "return 1\n", "broken"),
        ("def f():\n    d = g()\n", "def f():\n    d = d\n", "broken"),
        (
            "import torch\nif a():\n    torch.cuda.manual_seed(1)\n",
            "import torch\nif torch.accelerator.is_available():\n    torch.cuda.manual_seed(1)\n",
            "half",
        ),
        ("x = 1  # one\n", "x = 1\n", "comments"),
        ("x = 1\r\n", "x = 1\n", "bytes"),
        ("\ufeffx = 1\n", "x = 1\n", "bytes"),
        ("x = 1", "x = 1\n", "bytes"),
    ],
)
def test_fault_is_seen(old: str, new: str, kind: str, tmp_path: Path) -> None:
    assert [fault.kind for fault in looked_at(old, new, tmp_path) if fault.kind != "silent"] == [kind]


@pytest.mark.parametrize(
    "body",
    [
        "torch.accelerator.synchronize()",
        "if torch.cuda.is_available():\n        torch.cuda.set_device(0)",
        "fine = not torch.cuda.is_available() or torch.cuda.is_bf16_supported()",
    ],
)
def test_branch_that_moved_whole_is_not_half(body: str, tmp_path: Path) -> None:
    new = f"import torch\nif torch.accelerator.is_available():\n    {body}\n"
    assert not [fault for fault in looked_at("import torch\n", new, tmp_path) if fault.kind == "half"]


def test_second_change_is_seen(tmp_path: Path) -> None:
    outcome = Outcome(tmp_path / "a.py", Status.CHANGED, old="a\nb\n", new="a\nc\n")
    [fault] = looked_at("a\nb\n", "a\nb\n", tmp_path, outcome)
    assert (fault.kind, fault.line) == ("unstable", 2)
