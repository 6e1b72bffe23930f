"""The plan of a port: how ready each area is, what is automatic, what a person has to do, and the next commands."""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tpuport import kinds
from tpuport.account import Account, Group, Site, account, count
from tpuport.engine import Report
from tpuport.model import Rule, Safety, Status
from tpuport.source import text, torch_floor

DEPENDENCIES = ("kernels", "packaging")
"""Areas of the rules about what the code depends on."""

CHOSEN = ("config-library", "serving-launch")
"""Rules of other areas about the same: settings and commands that choose libraries for CUDA."""

EXPLAINED = 3
"""Rules of which the commands show the explanation."""

SCRIPTS = 2
"""Scripts that the commands profile."""

_TRAINS_AT_TOP = re.compile(rb"^(?:for|while)\b.*\n(?:(?:[ \t].*)?\n)*?[ \t].*\.backward\(", re.MULTILINE)
"""A loop of the module itself, outside all functions, that trains."""

_ARGUMENTS = re.compile(
    rb"""add_argument\(\s*["'][A-Za-z_]|required\s*=\s*True|HfArgumentParser|TrlParser|\bsys\.argv\[1|@click\.argument"""
)
"""What shows that a script does nothing without arguments."""

_WORKS = re.compile(rb"\.backward\(|Trainer\(|\.fit\((?!\)`)|\.generate\(|\bno_grad\(|(?<![.\w])(?<!def )train\(")
"""What a script that trains or infers does."""

_READS_RANK = re.compile(rb"""environ\[["'](?:LOCAL_)?RANK["']\]""")
_LAUNCHED = re.compile(rb"\b(?:xmp\.spawn|xla_multiprocessing\.spawn|torch_xla\.launch)\(")
"""PyTorch/XLA starts the ranks of a script that torchrun starts once it is migrated."""

_SPAWNS = re.compile(rb"\b(?:mp|multiprocessing)\.spawn\(")
"""The script starts its own ranks: what runs there is not the process that `tpuport profile` watches."""

_ASKS_FOR_RANK = re.compile(rb"""["'](?:LOCAL_)?RANK["'] (?:not )?in (?:os\.)?environ""")


@dataclass(frozen=True, slots=True)
class Area:
    """How many sites of one area of rules are rewritten, are left, and work as they stand."""

    name: str
    automatic: int
    left: int
    works: int


@dataclass(frozen=True, slots=True)
class Blocker:
    """Something that the code depends on and that a TPU does not run, with what stands in for it."""

    what: str
    stand_in: str
    sites: tuple[Site, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A command to run, and what for."""

    command: str
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What one page says of a port. Nothing is written to get it."""

    files: int
    changed: int
    """Files that migrate would change."""
    account: Account
    areas: tuple[Area, ...]
    blockers: tuple[Blocker, ...]
    steps: tuple[Step, ...]
    notes: tuple[str, ...]

    @property
    def sites(self) -> int:
        """All sites that speak of CUDA, or of what else a TPU does in another way."""
        return sum(area.automatic + area.left + area.works for area in self.areas)


def make(
    report: Report, rules: Sequence[Rule], paths: Sequence[Path], min_torch: str, *, dirty: bool, held: int = 0
) -> Plan:
    """The plan for `paths`, of which `report` tells what migrate would do.

    `min_torch` is what `--min-torch` gave, `dirty` whether files that would change hold work that is not committed, and
    `held` how many sites wait for a newer torch.
    """
    told = account(report, rules)
    return Plan(
        files=len(report.outcomes),
        changed=len(report.of(Status.CHANGED)),
        account=told,
        areas=tuple(_areas(told)),
        blockers=tuple(_blockers(told.left)),
        steps=(
            *_newer_torch(held, paths),
            *_steps(told, [outcome.path for outcome in report.outcomes], paths, min_torch, dirty),
        ),
        notes=report.notes,
    )


def _areas(told: Account) -> Iterator[Area]:
    parts = (told.rewritten, told.left, told.works)
    for name in sorted({group.rule.area for part in parts for group in part}):
        yield Area(name, *(count(group for group in part if group.rule.area == name) for part in parts))


def _blockers(left: Iterable[Group]) -> Iterator[Blocker]:
    """What is left of the dependencies, once for each thing that is said."""
    found: dict[tuple[str, str], list[Site]] = {}
    for group in left:
        if group.rule.area in DEPENDENCIES or group.rule.name in CHOSEN:
            for path, finding in group.sites:
                found.setdefault((finding.message, finding.reason), []).append((path, finding))
    for (what, stand_in), sites in sorted(found.items(), key=lambda item: (-len(item[1]), item[0])):
        yield Blocker(what, stand_in, tuple(sites))


def _newer_torch(held: int, paths: Sequence[Path]) -> Iterator[Step]:
    if held:
        given = " ".join(shlex.quote(str(path)) for path in paths)
        wait = "1 site waits" if held == 1 else f"{held} sites wait"
        yield Step(
            f"tpuport plan --min-torch {torch_floor.NEWEST} {given}",
            f"{wait} for a newer torch, and a TPU needs {torch_floor.NEWEST} anyway",
        )


def _steps(told: Account, files: Sequence[Path], paths: Sequence[Path], min_torch: str, dirty: bool) -> Iterator[Step]:
    given = " ".join(shlex.quote(str(path)) for path in paths)
    floor = f" --min-torch {min_torch}" if min_torch else ""
    if told.rewritten:
        if dirty:
            yield Step(
                'git add -A && git commit -m "Before the port"', "migrate changes no file that git can't bring back"
            )
        yield Step(f"tpuport migrate{floor} --diff {given}", "see what it would rewrite")
        yield Step(f"tpuport migrate{floor} --annotate --report PORT.md {given}", "rewrite, and mark what is left")
    unsafe = sum(finding.safety is Safety.UNSAFE for group in (*told.left, *told.works) for _, finding in group.sites)
    if unsafe:
        more = "1 site more" if unsafe == 1 else f"{unsafe} sites more"
        why = f"see {more} that can be rewritten, where numbers or speed on CUDA may change"
        yield Step(f"tpuport migrate{floor} --unsafe --diff {given}", why)
    for group in told.left[:EXPLAINED]:
        yield Step(f"tpuport rules {group.rule.code}", f"why {group.rule.name} is left, and what to write")
    for script in _scripts(files):
        name = shlex.quote(str(script))
        needed = _ARGUMENTS.search(text.read_bytes(script)) is not None
        arguments, told_so = (" -- ARGUMENTS", "; put the arguments there that it needs") if needed else ("", "")
        if _needs_ranks(script):
            why = f"run its ranks as torchrun would, on the CPU{told_so}"
            yield Step(f"tpuport profile --nproc 2 --device cpu {name}{arguments}", why)
        else:
            why = f"run it on an emulated TPU, with no TPU at hand{told_so}"
            yield Step(f"tpuport profile {name}{arguments}", why)
    baseline = f"tpuport lint{floor} --baseline tpuport-baseline.json"
    if told.left:
        yield Step(f"{baseline} --write-baseline {given}", "keep what is left, so that CI fails for what is new")
        yield Step(f"{baseline} {given}", "in CI: keep it portable")
    else:
        yield Step(f"tpuport lint{floor} {given}", "in CI: keep it portable")


def _scripts(files: Sequence[Path]) -> list[Path]:
    """Scripts that train or infer, as far as their names and texts tell: training first, those nearest to the top."""
    found = [path for path in files if kinds.of(path) == kinds.PYTHON and _is_script(path)]
    return sorted(found, key=lambda path: ("train" not in path.stem, len(path.parts), str(path)))[:SCRIPTS]


def _needs_ranks(path: Path) -> bool:
    """Whether a script, once migrated, ends without the environment that torchrun gives, as far as its text tells."""
    raw = text.read_bytes(path)
    return bool(_LAUNCHED.search(raw) or (_READS_RANK.search(raw) and not _ASKS_FOR_RANK.search(raw)))


def _is_script(path: Path) -> bool:
    if path.stem.startswith(("test_", "setup", "conftest")) or "tests" in path.parts:
        return False
    try:
        raw = text.read_bytes(path)
    except text.Unreadable:
        return False
    works = _WORKS.search(raw) is not None
    runs = (b"__main__" in raw and works) or bool(_TRAINS_AT_TOP.search(raw))
    return b"torch" in raw and runs and not _SPAWNS.search(raw)
