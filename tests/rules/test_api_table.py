"""Every row of the API table: what becomes of a CUDA form is what the row says, and a rule of its own says so."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from tpuport import catalog
from tpuport.kinds.python import is_candidate
from tpuport.match import NAMESPACE, findings
from tpuport.model import Finding, Project, Severity
from tpuport.rewrite import rewrite

RULES = catalog.load().rules
NEWEST = "2.13"
HEAD = """\
import torch
import torch.distributed as dist

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")


def sample(x, model, index, stream):
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table; see the head of `api_table.toml`."""

    section: str
    form: str
    expect: str
    code: str
    after: str = ""
    rule: str = ""
    floor: str = ""
    trap: str = ""
    says: str = ""


def load() -> list[Row]:
    table = tomllib.loads((Path(__file__).parent / "api_table.toml").read_text(encoding="utf-8"))
    return [Row(**row) for row in table["row"]]


ROWS = load()


def program(body: str) -> str:
    return HEAD + "".join(f"    {line}\n" if line else "\n" for line in body.splitlines())


def found(row: Row, torch: str = NEWEST) -> list[Finding]:
    return findings(program(row.code), Project(min_torch=torch), RULES)


def rewritten(row: Row, torch: str = NEWEST, *, unsafe: bool = False) -> str:
    return rewrite(program(row.code), Project(min_torch=torch), RULES, unsafe=unsafe).text


def before(version: str) -> str:
    major, _, minor = version.partition(".")
    return f"{major}.{int(minor) - 1}"


def rows(*kinds: str) -> list[pytest.ParameterSet]:  # type: ignore[name-defined]
    return [pytest.param(row, id=row.form) for row in ROWS if row.expect in kinds]


@pytest.mark.parametrize("row", rows("rewrite"))
def test_rewritten(row: Row) -> None:
    assert any(finding.rule == row.rule and finding.edits for finding in found(row))
    assert rewritten(row) == program(row.after)


@pytest.mark.parametrize("row", [p for p in rows("rewrite") if p.values[0].floor])
def test_not_rewritten_below_its_torch_floor(row: Row) -> None:
    assert rewritten(row, row.floor) == program(row.after)
    below = found(row, before(row.floor))
    assert row.rule in {finding.rule for finding in below}
    assert not any(finding.edits for finding in below if finding.rule == row.rule)
    assert any(f"needs torch {row.floor}" in finding.reason for finding in below)


@pytest.mark.parametrize("row", rows("report"))
def test_reported_with_a_reason(row: Row) -> None:
    told = [finding for finding in found(row) if finding.rule == row.rule]
    assert told
    assert all(finding.severity is not Severity.INFO and not finding.edits for finding in told)
    assert any(row.says in f"{finding.message} {finding.reason}" for finding in told)
    assert row.says or any(row.form.rpartition(".")[2] in finding.message for finding in told)
    assert rewritten(row, unsafe=True) == program(row.code)


@pytest.mark.parametrize("row", rows("note"))
def test_noted(row: Row) -> None:
    told = [finding for finding in found(row) if finding.rule == row.rule]
    assert told
    assert {finding.severity for finding in told} == {Severity.INFO}
    assert any(row.says in f"{finding.message} {finding.reason}" for finding in told)
    assert rewritten(row, unsafe=True) == program(row.code)


@pytest.mark.parametrize("row", rows("leave"))
def test_left_without_a_finding(row: Row) -> None:
    assert found(row) == []


def test_every_row_has_a_rule_of_its_own() -> None:
    without = [
        row.form for row in ROWS if row.expect != "leave" and {finding.rule for finding in found(row)} <= {NAMESPACE}
    ]
    assert without == []


def test_every_row_is_read() -> None:
    assert {row.expect for row in ROWS} == {"rewrite", "report", "note", "leave"}
    assert len({(row.section, row.form) for row in ROWS}) == len(ROWS)
    assert [row.form for row in ROWS if not row.trap] == []


def test_files_with_a_form_that_is_found_are_parsed() -> None:
    """The search for words that decides which files are parsed knows every form that has a finding."""
    unseen = [
        row.form for row in ROWS if row.expect != "leave" and not is_candidate(b"import torch\n" + row.code.encode())
    ]
    assert unseen == []
