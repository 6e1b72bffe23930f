import pytest

from tests.docs import pages
from tpuport import catalog

PAGES = pages.pages()


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.parent.name)
def test_a_page_says_what_its_rules_say(file: object) -> None:
    assert file.read_text(encoding="utf-8") == PAGES[file], "run: python -m tests.docs.pages"  # type: ignore[attr-defined,index]


def test_every_area_has_a_page_and_no_other_folder_has_one() -> None:
    assert set(catalog.rules_directory().rglob("README.md")) == set(PAGES)
