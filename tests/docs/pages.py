"""The rules' pages, one beside the rules of each area. `python -m tests.docs.pages` writes them anew."""

from itertools import groupby
from pathlib import Path

from tpuport import catalog
from tpuport.output.rules_markdown import page


def pages() -> dict[Path, str]:
    """Every page by its file."""
    rules = sorted(catalog.load(examples=True).rules, key=lambda rule: (rule.area, rule.code))
    return {
        catalog.rules_directory() / area / "README.md": page(f"Rules: {area}", list(of_area))
        for area, of_area in groupby(rules, key=lambda rule: rule.area)
    }


if __name__ == "__main__":
    for file, text in pages().items():
        file.write_text(text, encoding="utf-8")
