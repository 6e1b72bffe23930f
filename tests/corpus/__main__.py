"""Migrates copies of checkouts and reports what went wrong.

    python -m tests.corpus FOLDER... [--json] [--diffs DIR] [--keep DIR] [--min-torch VERSION] [--unsafe] [--jobs N]

A FOLDER is a checkout, or holds git checkouts. They are only read: each is copied (files up to 5 MB, without .git), the
copy is migrated, written and migrated again. The columns:

    files       Python files that were looked at; `changed` of them come out different
    rewritten   sites that were fixed; `left` for a person; `info`: named, but right as they are
    elsewhere   findings in files that are no Python, whatever became of them
    share       rewritten / (rewritten + left): the sites that needed no help
    broken      files that compiled before and do not now, and names assigned to themselves
    half        CUDA calls that stay, unguarded, below a test that moved (tests/corpus/shapes.py)
    unstable    files that a second run changes again
    silent      CUDA constructs of the new text that no finding speaks for, by a detector of this tool's own
                (tests/corpus/detector.py says what it knows, tests/corpus/trial.py what speaks for a construct)
    comments    comments that are gone
    bytes       files whose byte-order mark, line ends or last line's end changed
    failed      files that compile and still ended as failed
    unparsable  files that failed because the original does not compile
    seconds     the first run, with discovery and without writing

Exit status: 0 if every count from broken to failed is zero, 1 if not, 2 for wrong usage.
"""

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.corpus import table, trial


def main(arguments: list[str] | None = None) -> int:
    """Run over the folders named on the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.corpus", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--json", action="store_true", help="figures and faults as JSON, instead of the table")
    parser.add_argument("--diffs", type=Path, metavar="DIR", help="save one diff a repository there")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave the migrated copies there (must not exist)")
    parser.add_argument("--min-torch", default="", metavar="VERSION", help="as for tpuport migrate")
    parser.add_argument("--unsafe", action="store_true", help="as for tpuport migrate")
    parser.add_argument("--jobs", type=int, default=0, help="as for tpuport migrate")
    options = parser.parse_args(arguments)
    for folder in options.folders:
        if not folder.is_dir():
            parser.error(f"no such folder: {folder}")
    if options.keep and options.keep.exists():
        parser.error(f"--keep {options.keep}: exists already")

    results = []
    with _copies(options.keep) as copies:
        for number, checkout in enumerate(trial.checkouts(options.folders)):
            copy = (
                copies / f"{number}-{checkout.resolve().name}" if not options.keep else copies / checkout.resolve().name
            )
            results.append(
                trial.run(checkout, copy, min_torch=options.min_torch, unsafe=options.unsafe, jobs=options.jobs)
            )
    if options.diffs:
        options.diffs.mkdir(parents=True, exist_ok=True)
        for result in results:
            (options.diffs / f"{result.name}.diff").write_text(result.diff, encoding="utf-8", errors="surrogateescape")
    if options.json:
        json.dump([result.as_json() for result in results], sys.stdout, indent=2)
        print()
    else:
        listed = table.faults(results)
        print(*([listed, ""] if listed else []), table.render(results), sep="\n")
    return int(any(result.failed for result in results))


@contextlib.contextmanager
def _copies(keep: Path | None) -> Iterator[Path]:
    if keep:
        keep.mkdir(parents=True)
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="corpus-") as name:
        yield Path(name)


if __name__ == "__main__":
    sys.exit(main())
