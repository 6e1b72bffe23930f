"""One checkout: a copy of it is migrated twice, and every way in which that may have gone wrong is counted."""

import ast
import codecs
import io
import re
import shutil
import time
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher, unified_diff
from pathlib import Path

from tests.corpus import detector, others, shapes
from tpuport import catalog, engine, kinds
from tpuport.cli import tree
from tpuport.errors import TpuportError, UsageError
from tpuport.kinds.plain import Plain
from tpuport.model import Finding, Outcome, Severity, Status
from tpuport.source import write

MAX_SIZE = 5_000_000
"""Bytes: what is larger (weights, data) is not copied."""

APART = {"xla", "frameworks", "notebooks", "launch", "packaging"}
"""Areas of rules that are not about CUDA in a program: they are counted apart, wherever they stand."""

FAULTS = ("broken", "unstable", "half", "silent", "comments", "bytes", "failed")
"""The counts that have to be zero, in the order of the table."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that went wrong: its kind (one of FAULTS, or `unparsable` where the original is at fault) and where."""

    kind: str
    file: str
    line: int
    what: str


@dataclass(slots=True)
class Result:
    """What migrating one checkout came to. Sites are findings: rewritten, left for a person, or only named (info).

    Those in files that are no Python (requirements, images, scripts, settings), those of PyTorch/XLA and those of
    libraries around PyTorch are counted apart, as `elsewhere`.
    """

    name: str
    files: int = 0
    changed: int = 0
    rewritten: int = 0
    left: int = 0
    info: int = 0
    elsewhere: int = 0
    seconds: float = 0
    left_by_rule: Counter[str] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)
    diff: str = field(default="", repr=False)

    def count(self, kind: str) -> int:
        """How many faults of one kind there are."""
        return sum(fault.kind == kind for fault in self.faults)

    @property
    def failed(self) -> bool:
        """Whether any count that has to be zero is not."""
        return any(map(self.count, FAULTS))

    @property
    def share(self) -> float | None:
        """Sites rewritten without help, of those that needed anything."""
        return share(self.rewritten, self.left)

    def as_json(self) -> dict[str, object]:
        """Figures and faults, without the diff."""
        fields = {name: value for name, value in asdict(self).items() if name not in ("diff", "faults")}
        counts = {kind: self.count(kind) for kind in (*FAULTS, "unparsable")}
        return {**fields, "share": self.share, **counts, "faults": [asdict(fault) for fault in self.faults]}


def share(rewritten: int, left: int) -> float | None:
    """`rewritten` of all that needed anything; None where nothing did."""
    return rewritten / (rewritten + left) if rewritten + left else None


def checkouts(folders: Iterable[Path]) -> list[Path]:
    """The checkouts that `folders` stand for: a folder of git checkouts means each of them, any other itself."""
    found: list[Path] = []
    for folder in folders:
        inside = sorted(child for child in folder.iterdir() if (child / ".git").exists())
        found.extend([folder] if (folder / ".git").exists() or not inside else inside)
    return found


def run(checkout: Path, copy: Path, *, min_torch: str = "", unsafe: bool = False, jobs: int = 0) -> Result:
    """Copy `checkout` to `copy`, migrate the copy twice, and compare. The checkout itself is only read."""
    shutil.copytree(checkout, copy, symlinks=True, ignore=_left_out)
    (copy / ".git").mkdir(exist_ok=True)  # the top of the project, as it was in the checkout
    result = Result(checkout.name)
    started = time.perf_counter()
    try:
        first = _migrate(copy, min_torch, unsafe, jobs)
    except UsageError:  # nothing to read in it
        return result
    except TpuportError as error:
        result.faults.append(Fault("failed", ".", 0, str(error)))
        return result
    result.seconds = round(time.perf_counter() - started, 2)
    before = {outcome.path: outcome.path.read_bytes() for outcome in first if outcome.path.is_file()}
    for outcome in first:
        _count(result, outcome, copy, before)
        if outcome.status is Status.CHANGED:
            _write(result, outcome, copy)
    for outcome in _migrate(copy, min_torch, unsafe, jobs):
        if outcome.path in before:
            result.faults.extend(_look(outcome, before[outcome.path], copy))
    result.faults.sort(key=lambda fault: (fault.file, fault.line))
    return result


def _left_out(folder: str, names: Sequence[str]) -> set[str]:
    large = {name for name in names if (path := Path(folder, name)).is_file() and path.stat().st_size > MAX_SIZE}
    return large | ({".git"} & set(names))


def _migrate(copy: Path, min_torch: str, unsafe: bool, jobs: int) -> list[Outcome]:
    gathered = tree.gather([copy], select=None, ignore=None, min_torch=min_torch, rules=None, fix=True, unsafe=unsafe)
    return list(engine.run(gathered.items, gathered.task, jobs))


def _count(result: Result, outcome: Outcome, copy: Path, before: dict[Path, bytes]) -> None:
    name = _name(outcome.path, copy)
    result.files += outcome.status is not Status.SKIPPED
    result.changed += outcome.status is Status.CHANGED
    if _is_plain(outcome.path):
        result.elsewhere += len(outcome.fixed) + len(outcome.findings)
    else:
        _count_sites(result, outcome)
    if outcome.status is Status.FAILED:
        parses = not outcome.reason.startswith("syntax error") and _parses(before.get(outcome.path, b"\0"))
        result.faults.append(Fault("failed" if parses else "unparsable", name, 0, outcome.reason))
    if outcome.status is Status.CHANGED:
        names = f"a/{name}", f"b/{name}"
        old, new = outcome.old.split("\n"), outcome.new.split("\n")
        result.diff += "\n".join(unified_diff(old, new, *names, lineterm="")) + "\n"


def _is_plain(path: Path) -> bool:
    return isinstance(kinds.handler_of(path), Plain)


def _count_sites(result: Result, outcome: Outcome) -> None:
    areas = {rule.name: rule.area for rule in catalog.load().rules}
    apart = [finding for finding in (*outcome.fixed, *outcome.findings) if areas.get(finding.rule) in APART]
    result.elsewhere += len(apart)
    result.rewritten += sum(finding not in apart for finding in outcome.fixed)
    for finding in outcome.findings:
        if finding in apart:
            continue
        if finding.severity is Severity.INFO:
            result.info += 1
        else:
            result.left += 1
            result.left_by_rule[finding.rule] += 1


def _write(result: Result, outcome: Outcome, copy: Path) -> None:
    try:
        write.replace(outcome.path, outcome.old, outcome.new, copy)
    except write.Refused as error:
        result.faults.append(Fault("failed", _name(outcome.path, copy), 0, str(error)))


def _name(path: Path, copy: Path) -> str:
    return path.relative_to(copy).as_posix()


def _look(outcome: Outcome, old: bytes, copy: Path) -> Iterator[Fault]:
    """What is wrong with one file of the copy, by its second outcome and by its bytes."""
    name = _name(outcome.path, copy)
    new = outcome.path.read_bytes()
    if outcome.status is Status.CHANGED:
        yield Fault("unstable", name, _first_difference(outcome.old, outcome.new), "a second run changes it again")
    if changed := _bytes_changed(old, new):
        yield Fault("bytes", name, 0, changed)
    if _is_plain(outcome.path):
        if outcome.status is not Status.SKIPPED and old != new:
            own = kinds.of(outcome.path)
            yield from (Fault(kind, name, 0, what) for kind, what in others.faults(own, old.decode(), new.decode()))
        return
    if not _parses(old):
        return
    if not _parses(new):
        yield Fault("broken", name, 0, "does not compile any more")
        return
    old_text, new_text = _text(old), _text(new)
    yield from (Fault("broken", name, line, what) for line, what in shapes.emptied(old_text, new_text))
    yield from (Fault("half", name, line, what) for line, what in shapes.half_moved(old_text, new_text))
    lost = _comments(old_text) - _comments(new_text)
    yield from (Fault("comments", name, 0, comment) for comment in lost.elements())
    if outcome.status is not Status.FAILED:
        yield from _silent(name, old_text, new_text, outcome.findings)


def _silent(name: str, old: str, new: str, findings: Sequence[Finding]) -> Iterator[Fault]:
    """Constructs of the new text on which no finding of any severity lies.

    One is spoken for, too, where the test around it is: by a finding on that test, or because migrating put the test
    there. So `if torch.cuda.is_available(): ...` counts as silent only if it was there before and nobody names it.
    """
    added = _added_lines(old, new)
    named = {line for finding in findings for line in range(finding.span.line, finding.span.end_line + 1)}
    lines = new.split("\n")
    for construct in detector.constructs(new):
        if any(_overlap(construct, finding) for finding in findings):
            continue
        if construct.line in added or any(guard in added or guard in named for guard in construct.guards):
            continue
        yield Fault("silent", name, construct.line, f"{construct.kind}: {lines[construct.line - 1].strip()}")


def _overlap(construct: detector.Construct, finding: Finding) -> bool:
    start, end = (construct.line, construct.column), (construct.end_line, construct.end_column)
    return finding.span[:2] < end and start < finding.span[2:]


def _added_lines(old: str, new: str) -> set[int]:
    matcher = SequenceMatcher(None, old.split("\n"), new.split("\n"), autojunk=False)
    return {
        line + 1 for tag, _, _, start, stop in matcher.get_opcodes() if tag != "equal" for line in range(start, stop)
    }


def _first_difference(old: str, new: str) -> int:
    pairs = zip(old.split("\n"), new.split("\n"), strict=False)
    return next((number for number, (a, b) in enumerate(pairs, 1) if a != b), 0)


def _parses(raw: bytes) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(raw, "file", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
            compile(raw, "file", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _text(raw: bytes) -> str:
    encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
    return re.sub(r"\r\n?", "\n", raw.decode(encoding))


def _comments(text: str) -> Counter[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(token.string.strip() for token in tokens if token.type == tokenize.COMMENT)


def _bytes_changed(old: bytes, new: bytes) -> str:
    """What of a file's outer form was not kept."""
    if old.startswith(codecs.BOM_UTF8) is not new.startswith(codecs.BOM_UTF8):
        return "byte-order mark"
    ends = [set(re.findall(rb"\r\n|\r|\n", raw)) for raw in (old, new)]
    if not ends[1] <= ends[0]:
        return "line ends"
    if bool(re.search(rb"[\r\n]\Z", old)) is not bool(re.search(rb"[\r\n]\Z", new)):
        return "the end of the last line"
    return ""
