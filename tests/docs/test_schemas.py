"""The JSON Schemas say what the code prints, and what it prints is what they say."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.docs import schemas
from tests.lint.conftest import Lint, lint, project
from tests.profile.test_output import SESSIONS, session
from tpuport.output import profile_json
from tpuport.profile.analyses import analyse
from tpuport.profile.comparison import compare

__all__ = ["lint", "project"]

FILES = schemas.files()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_schema_says_what_the_types_say(file: Path) -> None:
    assert file.read_text(encoding="utf-8") == FILES[file], "run: python -m tests.docs.schemas"


def test_no_other_schema_lies_there() -> None:
    assert set(schemas.FOLDER.iterdir()) == set(FILES)


@pytest.mark.parametrize("name", schemas.DOCUMENTS)
def test_a_schema_is_one(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schemas.schema(name))


@pytest.mark.parametrize("name", SESSIONS)
def test_a_profile_is_as_its_schema_says(tmp_path: Path, name: str) -> None:
    saved = session(tmp_path, name)
    schemas.check("profile", json.loads(profile_json.render(saved, analyse(saved))))


def test_a_comparison_is_as_its_schema_says(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    before, after = session(tmp_path / "a", "emulated"), session(tmp_path / "b", "failed")
    comparison = compare(analyse(before), analyse(after), (before.plan, after.plan))
    document = json.loads(profile_json.render_comparison(comparison))
    assert document["changes"]
    schemas.check("profile-comparison", document)


def test_lints_findings_are_as_their_schema_says(project: Path, lint: Lint) -> None:
    (project / "broken.py").write_text("x.cuda(\n")
    document = json.loads(lint(".", "--json").out)
    assert document["findings"]
    assert document["failures"]
    schemas.check("lint", document)


@pytest.mark.usefixtures("project")
def test_a_migrations_account_is_as_its_schema_says(lint: Lint) -> None:
    document = json.loads(lint(".", "--json", "--allow-dirty", command="migrate").out)
    assert document["rewritten"]
    schemas.check("migrate", document)


@pytest.mark.usefixtures("project")
def test_a_plan_is_as_its_schema_says(lint: Lint) -> None:
    document = json.loads(lint(".", "--json", command="plan").out)
    assert document["automatic"]
    schemas.check("plan", document)


@pytest.mark.parametrize(
    "change",
    [{"version": 2}, {"schema": "other"}, {"modes": None}, {"created": 7}, {"losses": {"rows": []}}],
)
def test_a_schema_refuses_what_is_otherwise(tmp_path: Path, change: dict[str, Any]) -> None:
    saved = session(tmp_path, "emulated")
    document = json.loads(profile_json.render(saved, analyse(saved)))
    with pytest.raises(jsonschema.ValidationError):
        schemas.check("profile", {**document, **change})
