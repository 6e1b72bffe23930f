"""The keys of lint's JSON that the README names are those that it has."""

import json
import re
from pathlib import Path

from tests.docs.tables import README
from tests.lint.conftest import Lint, lint, project

__all__ = ["lint", "project"]


def test_the_readme_names_every_key(project: Path, lint: Lint) -> None:
    (project / "broken.py").write_text("x.cuda(\n")
    content = json.loads(lint(".", "--json").out)
    keys = {*content, *content["findings"][0], *content["failures"][0], *content["baseline"]}
    paragraph = README.read_text(encoding="utf-8").partition("**JSON.**")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", paragraph)) == keys
