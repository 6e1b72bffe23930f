"""`tpuport plan`, as a user runs it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import Done, tpuport

FIXTURE = Path(__file__).parents[2] / "fixtures" / "tiny_trainer"
KERNELS = """\
import apex
import torch

def choose(device, fast, slow):
    return fast() if device == "cuda" else slow()

if __name__ == "__main__":
    model = torch.nn.Linear(2, 2).cuda()
    apex.normalization.FusedLayerNorm(2)
    assert model.weight.device != "cuda:1"
    model(torch.ones(1, 2).cuda()).sum().backward()
"""


def plan(folder: Path, *arguments: str) -> Done:
    return tpuport("plan", *arguments, cwd=folder)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    shutil.copytree(FIXTURE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "kernels.py").write_text(KERNELS)
    return folder


def texts(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def migrated(folder: Path, *arguments: str) -> dict[str, int]:
    document = json.loads(tpuport("migrate", "--allow-dirty", "--json", *arguments, ".", cwd=folder).out)
    left = [finding for finding in document["findings"] if finding["severity"] != "info"]
    return {"automatic": document["summary"]["rewritten"], "left": len(left), "changed": len(document["changed"])}


def test_a_plan_says_what_migrate_then_does_and_changes_nothing(project: Path) -> None:
    before = texts(project)
    document = json.loads(plan(project, ".", "--json").out)
    assert texts(project) == before
    summary = document["summary"]
    assert migrated(project) == {key: summary[key] for key in ("automatic", "left", "changed")}
    for kind in ("automatic", "left", "works"):
        assert sum(area[kind] for area in document["areas"]) == summary[kind]
    assert sum(row["sites"] for row in document["automatic"]) == summary["automatic"]
    assert sum(len(row["sites"]) for row in document["work"]) == summary["left"]


def test_work_is_in_order_of_effort_and_blockers_have_their_stand_ins(project: Path) -> None:
    (project / "run.sh").write_text("torchrun train.py\n")
    document = json.loads(plan(project, ".", "--json").out)
    efforts = [row["effort"] for row in document["work"]]
    assert efforts == sorted(efforts, key=["low", "medium", "high"].index)
    assert set(efforts) == {"low", "medium", "high"}
    [apex] = [blocker for blocker in document["blockers"] if "apex" in blocker["what"]]
    assert "torch.nn.LayerNorm" in apex["stand_in"]
    assert [site["file"] for site in apex["sites"]] == ["kernels.py"]


def test_its_commands_run(project: Path) -> None:
    steps = json.loads(plan(project, ".", "--json").out)["steps"]
    commands = [step["command"] for step in steps]
    assert "tpuport profile train.py" in commands
    for command in commands:
        if not command.startswith("tpuport profile"):
            line = command.replace("tpuport", f"{sys.executable} -m tpuport", 1)
            done = subprocess.run(line, shell=True, cwd=project, capture_output=True, text=True)
            assert done.returncode == 0, (command, done.stderr)
    assert (project / "PORT.md").exists()


def test_work_that_is_not_committed_comes_first(project: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    first = json.loads(plan(project, ".", "--json").out)["steps"][0]
    assert first["command"].startswith("git add")


def test_the_floor_that_was_given_is_in_the_commands(project: Path) -> None:
    (project / "requirements.txt").write_text("torch>=1.8\n")
    held = json.loads(plan(project, ".", "--json").out)
    assert any("--min-torch" in note for note in held["notes"])
    first = held["steps"][0]
    assert first["command"] == "tpuport plan --min-torch 2.11 ."
    assert int(first["why"].split()[0]) > 40
    lifted = json.loads(plan(project, "--min-torch", "2.11", ".", "--json").out)
    assert lifted["summary"]["automatic"] > held["summary"]["automatic"]
    commands = [step["command"] for step in lifted["steps"]]
    assert "tpuport migrate --min-torch 2.11 --diff ." in commands
    assert "tpuport plan --min-torch 2.11 ." not in commands


def test_the_floor_is_a_note_only_where_it_holds_something_back(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch>=1.8\n")
    (tmp_path / "a.py").write_text("import torch\n\ntorch.ones(2).cuda()\n")
    assert any("--min-torch" in note for note in json.loads(plan(tmp_path, ".", "--json").out)["notes"])
    (tmp_path / "a.py").write_text("import torch\n\nimport apex\n")
    done = json.loads(plan(tmp_path, ".", "--json").out)
    assert done["work"]
    assert done["notes"] == []
    assert not any("--min-torch" in step["command"] for step in done["steps"])


@pytest.mark.parametrize(("asks", "ranks"), [("", "--nproc 2 --device cpu "), ("if 'RANK' in os.environ:\n    ", "")])
def test_a_script_that_torchrun_starts_is_profiled_with_ranks(tmp_path: Path, asks: str, ranks: str) -> None:
    loop = "for x in data:\n    model(x).sum().backward()\n"
    (tmp_path / "ddp.py").write_text(f"import os\nimport torch\n\n{asks}rank = int(os.environ['RANK'])\n{loop}")
    commands = [step["command"] for step in json.loads(plan(tmp_path, ".", "--json").out)["steps"]]
    assert f"tpuport profile {ranks}ddp.py" in commands


@pytest.mark.parametrize(
    ("module", "start", "profiles"),
    [
        ("torch_xla.distributed.xla_multiprocessing as xmp", "xmp.spawn(train)", ["--nproc 2 --device cpu "]),
        ("torch.multiprocessing as mp", "mp.spawn(train, nprocs=2)", []),
    ],
)
def test_a_script_that_starts_its_own_ranks_is_profiled_where_torchrun_takes_that_over(
    tmp_path: Path, module: str, start: str, profiles: list[str]
) -> None:
    main = f"def train(rank):\n    model(x).sum().backward()\n\n\nif __name__ == '__main__':\n    {start}\n"
    (tmp_path / "ranks.py").write_text(f"import torch\nimport {module}\n\n\n{main}")
    commands = [step["command"] for step in json.loads(plan(tmp_path, ".", "--json").out)["steps"]]
    found = [command for command in commands if "profile" in command]
    assert found == [f"tpuport profile {options}ranks.py" for options in profiles]


def test_a_script_that_trains_at_its_top_is_profiled(tmp_path: Path) -> None:
    loop = "for x in data:\n    model(x).sum().backward()\n"
    (tmp_path / "gan.py").write_text(f"import torch\n\nmodel.cuda()\n\n{loop}")
    (tmp_path / "library.py").write_text("import torch\n\n\ndef step(loss):\n    loss.cuda().backward()\n")
    commands = [step["command"] for step in json.loads(plan(tmp_path, ".", "--json").out)["steps"]]
    assert [command for command in commands if "profile" in command] == ["tpuport profile gan.py"]


def test_hints_are_counted_apart_as_migrate_says_nothing_of_them(tmp_path: Path) -> None:
    loop = "for x in data:\n    loss = model(x.cuda()).sum()\n    loss.backward()\n    print(loss.item())\n"
    (tmp_path / "train.py").write_text(f"import torch\n\nmodel = torch.nn.Linear(2, 2).cuda()\n{loop}")
    document = json.loads(plan(tmp_path, ".", "--json").out)
    summary = document["summary"]
    assert summary["hints"] > 0
    assert summary["sites"] == summary["automatic"] + summary["left"] + summary["works"]
    assert "tpu" not in [area["area"] for area in document["areas"]]
    assert f"{summary['hints']} hint" in plan(tmp_path, ".").out
    assert migrated(tmp_path) == {key: summary[key] for key in ("automatic", "left", "changed")}


CONFIG = """\
base_model: torch_model
attn_implementation: flash_attention_2
load_in_4bit: true
optimizer: adamw_8bit
flash_attention: true
use_liger: true
"""


def test_what_one_rule_says_of_several_sites_is_told_by_kind(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CONFIG)
    (tmp_path / "b.yaml").write_text("torch: 2\nload_in_8bit: true\n")
    done = plan(tmp_path, ".")
    assert "a.yaml:2 and 1 more" in done.out
    assert "and at a.yaml:3 and 1 more" in done.out
    assert "and 1 site of other kinds" in done.out
    assert "`load_in_4bit` asks for weights that CUDA kernels unpack" in done.out
    document = json.loads(plan(tmp_path, ".", "--json").out)
    assert "tpuport migrate --unsafe --diff ." in [step["command"] for step in document["steps"]]
    assert len(document["blockers"]) == 6
    page = plan(tmp_path, ".", "--format", "markdown").out
    assert page.count("\n| low | TP564") == 4


@pytest.mark.parametrize(
    ("line", "given"),
    [
        ('parser.add_argument("data")', " -- ARGUMENTS"),
        ('parser.add_argument("--data", required=True)', " -- ARGUMENTS"),
        ('parser.add_argument("--data", default="x")', ""),
    ],
)
def test_a_script_that_needs_arguments_is_profiled_with_some(tmp_path: Path, line: str, given: str) -> None:
    code = f'import torch\n\nif __name__ == "__main__":\n    {line}\n    loss.cuda().backward()\n'
    (tmp_path / "train.py").write_text(code)
    (tmp_path / "data.py").write_text('import torch\n\nif __name__ == "__main__":\n    make().train(False)\n')
    commands = [step["command"] for step in json.loads(plan(tmp_path, ".", "--json").out)["steps"]]
    assert [command for command in commands if "profile" in command] == [f"tpuport profile train.py{given}"]


def test_markdown_goes_to_a_file(project: Path) -> None:
    done = plan(project, ".", "--format", "markdown", "--output-file", "PLAN.md")
    assert (done.code, done.out) == (0, "")
    page = (project / "PLAN.md").read_text()
    headings = [line for line in page.splitlines() if line.startswith("#")]
    assert headings == [
        "# Plan of the port to TPU",
        "## Readiness by area",
        "## Automatic",
        "## For a person",
        "## Blockers among what the code depends on",
        "## Next",
    ]


def test_a_file_that_can_not_be_read_is_named_and_costs_only_itself(project: Path) -> None:
    (project / "broken.py").write_text("x.cuda(\n")
    done = plan(project, ".")
    assert done.code == 2
    assert "broken.py: failed: syntax error, line 1" in done.out
    assert "tpuport rewrites" in done.out


def test_nothing_to_port(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("print(1)\n")
    done = plan(tmp_path, ".")
    assert done.code == 0
    assert done.out.splitlines()[0] == "1 file: nothing that speaks of CUDA."


def test_an_unknown_format_names_the_valid_ones(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("print(1)\n")
    done = plan(tmp_path, ".", "--format", "html")
    assert done.code == 2
    assert "valid: text, markdown, json" in done.err


def test_a_page_that_cannot_be_saved_is_2(project: Path) -> None:
    done = plan(project, ".", "--output-file", "gone/PLAN.md")
    assert (done.code, done.out) == (2, "")
    assert "--output-file gone/PLAN.md: cannot be written: there is no directory" in done.err
