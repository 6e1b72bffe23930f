"""The generated parts of the README: exit codes and rules. `python -m tests.docs.tables` writes them anew."""

import re
from collections.abc import Callable
from pathlib import Path

from tpuport import catalog
from tpuport.errors import ExitCode

README = Path(__file__).parents[2] / "README.md"
MEANING = {
    ExitCode.CLEAN: "nothing to report",
    ExitCode.FINDINGS: "lint findings, manual work left under `migrate --strict`, a failed profile threshold",
    ExitCode.ERROR: "wrong usage or configuration, or a file that could not be read, parsed or written",
    ExitCode.PROGRAM_FAILED: "the profiled program failed",
}


def exit_codes() -> str:
    """One row an exit code."""
    rows = [f"| {code.value} | {MEANING[code]} |" for code in ExitCode]
    interrupted = "| 130 | interrupted; every file is as it was or wholly written |"
    return "\n".join(["| code | means |", "|---|---|", *rows, interrupted])


def rules() -> str:
    """One row a rule."""
    rows = [
        f"| {rule.code} | {rule.name} | {rule.severity} | {rule.safety} | {rule.title} |"
        for rule in catalog.load().rules
    ]
    return "\n".join(["| code | rule | severity | fix | says |", "|---|---|---|---|---|", *rows])


TABLES: dict[str, Callable[[], str]] = {"exit-codes": exit_codes, "rules": rules}


def written(text: str) -> str:
    """A README with every table generated."""
    for name, table in TABLES.items():
        pattern = re.compile(rf"(?<=<!-- table: {name} -->\n)(?:\|.*\n)*(?=<!-- end -->)")
        text = pattern.sub(f"{table()}\n".replace("\\", r"\\"), text)
    return text


if __name__ == "__main__":
    README.write_text(written(README.read_text(encoding="utf-8")), encoding="utf-8")
