"""The README says what the program does: its tables are generated and its sessions are runs."""

import re
from pathlib import Path

import pytest

from tests.docs import sessions, tables

TEXT = sessions.README.read_text(encoding="utf-8")
EXACT = ("plan", "migrate-diff", "migrate", "lint", "rules")
"""Sessions that print the same on every machine."""

NUMBER = re.compile(r"\d[\d.,]*")


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """For each exact session, what the README shows and what a run prints."""
    folder = sessions.checkout(tmp_path_factory.mktemp("readme"))
    return {
        session.name: (session.body, sessions.body(session, folder))
        for _, session in sessions.sessions(TEXT)
        if session.name in EXACT
    }


@pytest.mark.parametrize("name", EXACT)
def test_session_is_a_run(outputs: dict[str, tuple[str, str]], name: str) -> None:
    shown, printed = outputs[name]
    assert printed == shown


@pytest.mark.parametrize("name", list(tables.TABLES))
def test_table_is_in_the_readme(name: str) -> None:
    assert f"<!-- table: {name} -->" in TEXT


def test_tables_are_generated() -> None:
    assert tables.written(TEXT) == TEXT


def test_every_linked_file_exists() -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", TEXT)
    assert [link for link in links if not (Path(sessions.ROOT) / link).exists()] == []


def test_every_command_has_a_session() -> None:
    commands = [command for _, session in sessions.sessions(TEXT) for command in session.commands]
    shown = {command.split()[1] for command in commands if command.startswith("tpuport ")}
    assert shown >= {"plan", "migrate", "lint", "profile", "report", "rules", "doctor"}
