"""Imports go one way: from what prints to what reads, and never in a circle."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import tpuport

ROOT = Path(tpuport.__file__).parent
LAYERS = (
    {"source", "analysis"},
    {"mapping", "checks"},
    {"settle"},
    {"match"},
    {"rewrite"},
    {"engine"},
    {"account", "plan"},
    {"output"},
    {"cli"},
)
"""Packages and modules, each of which may import those of its own row and of the rows above."""


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def imported(path: Path) -> set[str]:
    """The modules of tpuport that one imports, at its top or when it needs them."""
    found = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name.removeprefix("tpuport.") in MODULES else node.module for name in inner}
    return {name.removeprefix("tpuport.") for name in found if name.startswith("tpuport.")}


IMPORTS = {name: imported(path) & MODULES.keys() for name, path in MODULES.items()}


def layer(name: str) -> int | None:
    return next((rank for rank, names in enumerate(LAYERS) if name.split(".")[0] in names), None)


def test_no_module_imports_itself_through_others() -> None:
    try:
        TopologicalSorter(IMPORTS).prepare()
    except CycleError as error:
        raise AssertionError(" imports ".join(reversed(error.args[1]))) from None


def test_no_layer_imports_one_above_it() -> None:
    upward = [
        f"{name} imports {other}"
        for name, others in IMPORTS.items()
        for other in others
        if (own := layer(name)) is not None and (there := layer(other)) is not None and there > own
    ]
    assert upward == []


def test_every_layer_is_there() -> None:
    assert {name.split(".")[0] for name in MODULES} >= set().union(*LAYERS)
    assert "source.text" in IMPORTS["engine"]
