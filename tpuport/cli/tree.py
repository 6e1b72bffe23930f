"""What lint and migrate share: from PATHs and options to the files, the rules, and what the rules must know."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tpuport.errors import ConfigError
from tpuport.model import Outcome, Project, Rule

if TYPE_CHECKING:
    from tpuport.cache import Cache
    from tpuport.catalog import Catalog
    from tpuport.config import Config
    from tpuport.engine import Task
    from tpuport.source.torch_floor import Floor

Paths = Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files and directories.", show_default=False)]
Select = Annotated[
    list[str] | None, typer.Option("--select", metavar="CODES", help="Only these rules: code prefixes or names.")
]
Ignore = Annotated[
    list[str] | None, typer.Option("--ignore", metavar="CODES", help="Not these rules: code prefixes or names.")
]
MinTorch = Annotated[
    str,
    typer.Option(
        "--min-torch",
        metavar="VERSION",
        help="The oldest torch that the code must run on.  [default: what the project declares, else 2.11]",
    ),
]
Rules = Annotated[list[Path] | None, typer.Option("--rules", metavar="DIR", help="A folder of further rules.")]
Jobs = Annotated[int, typer.Option("--jobs", min=0, help="Worker processes; 0: one for each core.")]
Format = Annotated[str, typer.Option("--format", help="Output format: text or json.")]
ForceExclude = Annotated[
    bool, typer.Option("--force-exclude", help="Leave out excluded files even where they are given as PATH.")
]
Json = Annotated[bool, typer.Option("--json", help="Short for --format json.")]

_WORTH_A_CACHE = 50
"""Below so many files, reading the cache takes longer than it saves."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A run that is ready to go."""

    settings: "Config"
    known: "Catalog"
    items: tuple[Path | Outcome, ...]
    task: "Task"
    floor: "Floor"
    declared: "Floor | None" = None
    """What the project declares, where that is older than the floor."""
    cache: "Cache | None" = None

    @property
    def root(self) -> Path:
        """The project's top directory."""
        return self.settings.root

    def notes(self, outcomes: Iterable[Outcome]) -> tuple[str, ...]:
        """What is to be said of the torch floor, given what came out: only where it makes a difference."""
        from tpuport.source import torch_floor

        outcomes = list(outcomes)
        notes = []
        if torch_floor.older(self.floor.version, torch_floor.ENOUGH) and held_back(outcomes):
            notes.append(
                f"the code has to run on torch {self.floor.version} ({self.floor.source}), which lacks what many "
                f"rewrites need: `--min-torch {torch_floor.NEWEST}`, or raising the requirement, lets more be rewritten"
            )
        if self.declared and any(outcome.fixed for outcome in outcomes):
            notes.append(
                f"the new code may ask for torch {self.floor.version} ({self.floor.source}), and "
                f"{self.declared.source} admits {self.declared.version}: raise it there"
            )
        return tuple(notes)

    def settled(self, jobs: int) -> Iterator[Outcome]:
        """Outcomes in order, with progress on stderr."""
        from tpuport import engine
        from tpuport.cli import streams

        if self.cache is None:
            outcomes = engine.run(self.items, self.task, jobs)
        else:
            outcomes = engine.run_cached(self.items, self.task, self.cache, jobs)
        settled = list(streams.with_progress(outcomes, len(self.items)))
        settled = engine.reconsidered(settled, self.task, jobs, self.cache)
        if self.cache is not None:
            self.cache.save()
        return iter(settled)


def gather(
    paths: Sequence[Path],
    *,
    select: Sequence[str] | None,
    ignore: Sequence[str] | None,
    min_torch: str,
    rules: Sequence[Path] | None,
    fix: bool = False,
    everything: bool = False,
    unsafe: bool = False,
    require_reason: bool = False,
    force_exclude: bool = False,
    given: bytes | None = None,
    caching: bool = False,
    jobs: int = 0,
    debug: bool = False,
) -> Tree:
    """Read settings and rules, find the files and look at each once.

    With `fix`, the rules that have nothing to migrate take part only if `everything` is asked for.
    `select` replaces that of the settings, `ignore` and `rules` add to theirs. `given` is the content of the one PATH,
    where it is not to be read from disk. With `caching`, a run over many files takes from the cache
    what it knows. Raises UsageError and ConfigError.
    """
    from tpuport import catalog, config, engine, kinds, survey
    from tpuport.source.discover import discover, is_excluded

    settings = config.load(paths[0])
    known = catalog.load([*settings.rules, *(rules or ())])
    chosen = in_force(known, settings, _split(select), _split(ignore), require_reason)
    if fix and not everything:
        from tpuport.account import LINT_ONLY

        chosen = tuple(rule for rule in chosen if rule.area != LINT_ONLY)
    oldest, declared = floor(settings, paths[0], min_torch)
    cache = None
    if given is None:
        found = discover(paths, settings.root, settings.exclude, force=force_exclude)
        cache = _cache(settings.root, len(found)) if caching else None
        looked = survey.survey(found, settings.max_file_size, cache, jobs)
        items, facts = looked.items, looked.facts
    else:
        items, facts = (), survey.facts_of(paths[0], given)
    if any(kinds.of(path) not in ("", kinds.PYTHON) and not path.is_dir() for path in paths):
        facts = replace(facts, uses_torch=True)  # asked for by name
    task = engine.Task(
        rules=chosen,
        project=Project(
            min_torch=oldest.version,
            floor_source=oldest.source,
            facts=facts,
        ),
        fix=fix,
        unsafe=unsafe,
        line_length=settings.line_length,
        root=settings.root,
        per_file_ignores=tuple(
            (pattern, frozenset(rule.code for rule in known.select(codes, ())))
            for pattern, codes in settings.per_file_ignores.items()
            if codes
        ),
        max_size=settings.max_file_size,
        time_limit=settings.time_limit,
        debug=debug,
    )
    if given is not None and not (force_exclude and is_excluded(paths[0], settings.root, settings.exclude)):
        items = (engine.settle(paths[0], task, given),)
    return Tree(settings, known, items, task, oldest, declared, cache)


def _cache(root: Path, files: int) -> "Cache | None":
    if files < _WORTH_A_CACHE:
        return None
    from tpuport import cache

    return cache.open_for(root)


def in_force(
    known: "Catalog",
    settings: "Config",
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    require_reason: bool = False,
) -> tuple[Rule, ...]:
    """The rules that the settings and the command line leave; the one about missing reasons has to be asked for."""
    from tpuport import suppress

    _check_codes(known, settings)
    chosen = known.select(select or settings.select, [*settings.ignore, *ignore])
    if require_reason or settings.require_reason:
        return chosen
    return tuple(rule for rule in chosen if rule.name != suppress.WITHOUT_REASON)


def _split(codes: Sequence[str] | None) -> list[str]:
    return [code.strip() for group in codes or () for code in group.split(",") if code.strip()]


def _check_codes(known: "Catalog", settings: "Config") -> None:
    """Refuse a setting that names a rule which does not exist, with the place of the setting."""
    per_file = [code for codes in settings.per_file_ignores.values() for code in codes]
    for key, codes in (
        ("select", settings.select),
        ("ignore", settings.ignore),
        ("severity", tuple(settings.severity)),
        ("per-file-ignores", per_file),
    ):
        try:
            known.select(codes)
        except ConfigError as error:
            raise ConfigError(
                f"{settings.origins.get(key, settings.file)}: `{key}`: {error}", hint=error.hint
            ) from None


def floor(settings: "Config", path: Path, min_torch: str) -> "tuple[Floor, Floor | None]":
    """The oldest torch that the code must run on: as the command line says, the settings, or the project's files.

    With it, what the project's files declare where that is older.
    """
    from tpuport import config
    from tpuport.source import torch_floor

    declared = torch_floor.nearest(config.upwards(path, settings.root), settings.root)
    if min_torch:
        oldest = torch_floor.Floor(torch_floor.checked(min_torch, "--min-torch"), "--min-torch")
    elif settings.min_torch:
        where = f"min-torch in {settings.file}"
        oldest = torch_floor.Floor(torch_floor.checked(settings.min_torch, where), where)
    else:
        return declared or torch_floor.Floor(torch_floor.NEWEST, ""), None
    return oldest, declared if declared and torch_floor.older(declared.version, oldest.version) else None


def held_back(outcomes: Iterable[Outcome]) -> int:
    """Findings that stay because the floor lacks what their fix needs."""
    from tpuport.source.torch_floor import HELD

    return sum(HELD in finding.reason for outcome in outcomes for finding in outcome.findings)
