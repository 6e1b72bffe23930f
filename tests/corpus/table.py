"""The result as a table of plain text."""

from collections import Counter
from collections.abc import Iterable, Sequence

from tests.corpus.trial import FAULTS, Result, share

FIGURES = ("files", "changed", "rewritten", "left", "info", "elsewhere")
HEAD = ("repository", *FIGURES, "share", *FAULTS, "unparsable", "seconds")


def render(results: Sequence[Result]) -> str:
    """One row a repository and one for all, then the rules that leave most to a person."""
    rows = [HEAD, *map(_row, results), _row(_all(results))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = ["  ".join(_aligned(row, widths)).rstrip() for row in rows]
    lines.insert(-1, "-" * len(lines[0]))
    left: Counter[str] = sum((result.left_by_rule for result in results), Counter())
    lines += ["", "left for a person: " + (", ".join(f"{name} {n}" for name, n in left.most_common(12)) or "nothing")]
    return "\n".join(lines)


def faults(results: Iterable[Result]) -> str:
    """One line a fault."""
    return "\n".join(
        f"{fault.kind}: {result.name}/{fault.file}:{fault.line}: {fault.what}"
        for result in results
        for fault in result.faults
    )


def _row(result: Result) -> tuple[str, ...]:
    rate = share(result.rewritten, result.left)
    return (
        result.name,
        *(str(getattr(result, name)) for name in FIGURES),
        "-" if rate is None else f"{rate:.1%}",
        *(str(result.count(kind)) for kind in (*FAULTS, "unparsable")),
        f"{result.seconds:.2f}",
    )


def _all(results: Sequence[Result]) -> Result:
    total = Result(f"all {len(results)}")
    for result in results:
        total.files += result.files
        total.changed += result.changed
        total.rewritten += result.rewritten
        total.left += result.left
        total.info += result.info
        total.elsewhere += result.elsewhere
        total.seconds += result.seconds
        total.faults += result.faults
    return total


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    first, *rest = [
        cell.ljust(width) if not n else cell.rjust(width)
        for n, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return [first, *rest]
