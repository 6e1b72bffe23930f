"""What the formats for CI systems share: file names as those systems know them."""

import os
from pathlib import Path

_CHECKOUTS = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
"""Where the CI system says that its checkout of the repository is."""


def relative(path: Path) -> str:
    """`path` relative to the checkout in CI, else to the current directory, with `/` between its parts."""
    absolute = os.path.abspath(path)
    bases = [base for name in _CHECKOUTS if (base := os.environ.get(name))]
    for base in [*bases, os.getcwd()]:
        shorter = os.path.relpath(absolute, base)
        if shorter != os.pardir and not shorter.startswith(os.pardir + os.sep):
            return Path(shorter).as_posix()
    return Path(absolute).as_posix()
