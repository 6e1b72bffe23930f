"""Migrated code runs: every rule's "after" and every rewritten row of the API table, on CPU, CUDA and a TPU.

CUDA is a stand-in (`tests.cuda_stand_in`), the TPU is emulated; one process a kind of device runs them all. Where the
code before runs on CPU, the code after prints the same there; on CUDA it prints the same and asks the same of the
devices; on the TPU it prints what it printed on CPU. What can not be shown so is skipped, with the reason.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory

import pytest

from tests.rules.test_api_table import ROWS, Row, program
from tpuport import catalog, kinds
from tpuport.analysis.module import Module
from tpuport.model import Example

ROOT = Path(__file__).parents[2]
CPU, CUDA, EMULATED = "cpu", "cuda-stand-in", "emulated-tpu"
SECONDS = 150
NEEDED = {CPU: ("torch",), CUDA: ("torch",), EMULATED: ("torch", "torch_tpu", "lammps_jax_pjrt_cpu")}

FRAMEWORKS = ("accelerate", "transformers", "tokenizers", "lightning")
"""Libraries around PyTorch that examples import; the `dev` extra has them."""

NOT_RUN = {
    'table: torch.load(map_location="cuda")': "it needs a file; the example of map-location has one",
    "table: torch.load to CUDA by a function": "it needs a file; the example of map-location has one",
    'table: sort_by="cuda_time_total"': "it needs recorded events",
    "table: DistributedDataParallel(device_ids=...)": "it needs a process group; the example of ddp-device-ids has one",
    "table: dist.reduce": "it needs a process group; the example of reduce-to-one has one",
}


@dataclass(frozen=True, slots=True)
class Snippet:
    """Code before and after migration, each with the code that uses it."""

    name: str
    before: str
    after: str
    same_everywhere: bool = True
    """Whether a TPU has to print what the CPU prints."""

    @property
    def lacks(self) -> str:
        """A library that the code imports and that is not installed."""
        imported = re.findall(r"^(?:from|import) (\w+)", self.after, re.MULTILINE)
        return next((name for name in imported if name in FRAMEWORKS and find_spec(name) is None), "")


@dataclass(frozen=True, slots=True)
class Ending:
    """What a snippet printed and asked of CUDA's devices, or the error that ended it."""

    printed: str = ""
    error: str = ""
    effects: list[str] = field(default_factory=list)


def is_python(example: Example) -> bool:
    return kinds.of(example.file) == kinds.PYTHON


def of_rules() -> list[Snippet]:
    return [
        Snippet(f"{rule.name}-{number}", f"{example.before}\n{example.run}", f"{example.after}\n{example.run}")
        for rule in catalog.load(examples=True).rules
        for number, example in enumerate(rule.examples)
        if example.after is not None and example.run and not example.unsafe
    ]


def of_row(row: Row) -> Snippet:
    alone = "one_rank()\n" if row.section == "distributed" else ""
    use = f"\n\n{alone}print(summary(sample(*arguments())))\n"
    return Snippet(f"table: {row.form}", program(row.code) + use, program(row.after) + use, same_everywhere=False)


NEW_NAMES = sorted(
    {
        use.name
        for rule in catalog.load(examples=True).rules
        for after in [example.after for example in rule.examples if example.after and is_python(example)]
        for use in Module(after).uses
    }
    | {use.name for row in ROWS if row.expect == "rewrite" for use in Module(program(row.after)).uses}
    | {
        new.partition("(")[0]
        for rule in catalog.load().rules
        if rule.mapping
        for old, new in rule.mapping.names.items()
        if new and new != old
    }
)
"""Every name of torch that a rule writes, qualified."""

QUESTIONS = {
    "names that torch lacks": f"""
from operator import attrgetter

for name in {[name for name in NEW_NAMES if name.startswith("torch.")]!r}:
    try:
        attrgetter(name.removeprefix("torch."))(torch)
    except AttributeError:
        print(name)
""",
    "public names of torch.cuda": """
for name in dir(torch.cuda):
    if not name.startswith("_"):
        print(name)
""",
}
NO_API = {
    *("Any", "Callable", "NewType", "Optional", "TYPE_CHECKING", "classproperty", "importlib", "lru_cache", "os"),
    *("platform", "threading", "torch", "traceback", "warnings"),
}
"""What torch.cuda imports for itself."""

SNIPPETS = [*of_rules(), *(of_row(row) for row in ROWS if row.expect == "rewrite")]


def missing(device: str) -> str:
    if device == CUDA and not which("c++"):
        return "a C++ compiler"
    return next((name for name in NEEDED[device] if find_spec(name) is None), "")


@cache
def endings(device: str) -> dict[str, Ending]:
    """How every snippet ends on that device, before and after migration."""
    run = [snippet for snippet in SNIPPETS if snippet.name not in NOT_RUN and not snippet.lacks]
    jobs = {f"after {s.name}": s.after for s in run}
    if device != EMULATED:
        jobs |= {f"before {s.name}": s.before for s in run}
    if device == CPU:
        jobs |= {f"after {name}": code for name, code in QUESTIONS.items()}
    with TemporaryDirectory() as folder:
        given, results = Path(folder, "jobs.json"), Path(folder, "results.jsonl")
        given.write_text(json.dumps(jobs), encoding="utf-8")
        subprocess.run(
            [sys.executable, "-m", "tests.rules.run_snippets", device, str(given), str(results)],
            cwd=ROOT,
            env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
        told = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    return {name: Ending(**ending) for line in told for name, ending in line.items()}


def snippets(parametrized: Callable[[Snippet], None]) -> Callable[[Snippet], None]:
    named = [pytest.param(snippet, id=snippet.name) for snippet in SNIPPETS]
    decorated: Callable[[Snippet], None] = pytest.mark.parametrize("snippet", named)(parametrized)
    return decorated


def ending(device: str, name: str, state: str = "after") -> Ending:
    library = next((snippet.lacks for snippet in SNIPPETS if snippet.name == name), "")
    if lacking := missing(device) or library:
        pytest.skip(f"{lacking} is not installed")
    if name in NOT_RUN:
        pytest.skip(NOT_RUN[name])
    ended = endings(device)
    assert f"{state} {name}" in ended, "the process ended before its turn"
    return ended[f"{state} {name}"]


@snippets
def test_runs_on_the_cpu_as_before(snippet: Snippet) -> None:
    before, after = ending(CPU, snippet.name, "before"), ending(CPU, snippet.name)
    if before.error and after.error:
        pytest.skip(f"needs an accelerator, before ({before.error}) and after ({after.error})")
    assert not after.error
    assert before.error or after.printed == before.printed


@snippets
def test_does_on_cuda_what_it_did(snippet: Snippet) -> None:
    before, after = ending(CUDA, snippet.name, "before"), ending(CUDA, snippet.name)
    if before.error and after.error:
        pytest.skip(f"the stand-in for CUDA lacks something, before ({before.error}) and after ({after.error})")
    assert not after.error
    assert before.error or after == before


@snippets
def test_runs_on_the_emulated_tpu(snippet: Snippet) -> None:
    on_tpu = ending(EMULATED, snippet.name)
    assert not on_tpu.error
    on_cpu = ending(CPU, snippet.name)
    assert on_cpu.error or not snippet.same_everywhere or on_tpu.printed == on_cpu.printed


def test_every_example_that_changes_is_run() -> None:
    not_run = [
        f"{rule.name}-{number}"
        for rule in catalog.load(examples=True).rules
        for number, example in enumerate(rule.examples)
        if example.after is not None and is_python(example) and not example.run and not example.unsafe
    ]
    assert not_run == []


def test_every_name_that_is_written_exists() -> None:
    assert ending(CPU, "names that torch lacks") == Ending()
    assert "torch.accelerator.device_count" in NEW_NAMES


def test_every_public_name_of_torch_cuda_has_a_row() -> None:
    there = set(ending(CPU, "public names of torch.cuda").printed.split()) - NO_API
    assert there - {row.form.removeprefix("torch.cuda.") for row in ROWS} == set()
