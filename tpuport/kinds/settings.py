"""Trees of settings, whatever they are written in: what they have in common for YAML, JSON and TOML."""

import re
from collections.abc import Iterable
from dataclasses import replace

from tpuport.kinds import commands, images, packages
from tpuport.kinds.document import Document, Entry, Image, Variable

WORDS = (
    *(b"cuda", b"nccl", b"gpu", b"nvidia", b"fp16", b"float16", b"precision", b"torch", b"half", b"accelerators"),
    *(b"vllm", b"sglang", b"modelartifacts", b"flash_att", b"attn_impl", b"xformers", b"liger", b"tf32", b"deepspeed"),
    *(b"8bit", b"4bit", b"apex"),
)
"""Without one of them, in lower case, a file of settings has nothing in it that a rule looks for."""

_STARTS_CONTAINERS = {"services", "containers", "initContainers", "container", "jobs", "script", "command", "replicas"}
"""Keys above or beside `image` that say that it is a container's."""

_IMAGE_KEY = re.compile(r"image|.*(?:_i|-i|I)mage")

_ENVIRONMENTS = ("env", "environment", "envs", "variables")
"""Keys of what is set in the environment."""


def with_siblings(found: Iterable[Entry]) -> list[Entry]:
    """The entries, each with the keys that stand beside its own."""
    entries = list(found)
    keys: dict[tuple[int, tuple[str, ...]], set[str]] = {}
    for entry in entries:
        keys.setdefault((entry.document, entry.path[:-1]), set()).add(entry.key)
    frozen = {parent: frozenset(own) for parent, own in keys.items()}
    return [replace(entry, siblings=frozen[entry.document, entry.path[:-1]]) for entry in entries]


def interpret(document: Document) -> None:
    """Add what the entries mean to those who start containers and jobs: images, environment variables."""
    for entry in document.entries:
        if not entry.is_scalar or not entry.text:
            continue
        if _is_image(entry):
            document.images.append(Image(entry.text, entry.span))
        elif variable := _variable(entry):
            document.variables.append(variable)


def _is_image(entry: Entry) -> bool:
    """Whether an entry names the image of a container: by what stands around it, or by what only images look like."""
    if entry.key == "container":
        return "jobs" in entry.path
    if entry.key == "image" and _STARTS_CONTAINERS & {*entry.path[:-1], *entry.siblings}:
        return True
    if entry.key == "repository":
        return "tag" in entry.siblings
    return images.is_hosted(entry.text) or bool(_IMAGE_KEY.fullmatch(entry.key) and images.is_tagged(entry.text))


def _variable(entry: Entry) -> Variable | None:
    """The environment variable that an entry sets: a key, an item `NAME=value`, or the `name` of one in a list."""
    if entry.is_item and entry.key in _ENVIRONMENTS:
        assigned = commands.ASSIGNMENT.fullmatch(entry.text)
        return Variable(assigned[1], assigned[2], entry.span) if assigned else None
    if entry.key == "name" and entry.siblings & {"value", "valueFrom"} and re.fullmatch(r"[A-Z][A-Z0-9_]+", entry.text):
        return Variable(entry.text, entry.text, entry.span)
    if len(entry.path) < 2 or entry.path[-2] not in _ENVIRONMENTS or entry.is_item:
        return None
    if entry.key in ("name", "value"):
        return Variable(entry.text, entry.text, entry.span) if entry.key == "name" else None
    return Variable(entry.key, entry.text, entry.key_span)


def conda(document: Document) -> None:
    """Add what a conda environment asks for, if the settings are one."""
    if not any(entry.path == ("dependencies",) for entry in document.entries):
        return
    for entry in document.entries:
        if not entry.is_scalar or not entry.is_item:
            continue
        if entry.path == ("dependencies",):
            one = packages.conda(entry.text, entry.span)
        elif entry.path == ("dependencies", "pip"):
            packages.line(document, entry.text, entry.span)
            continue
        else:
            continue
        if one is not None:
            packages.add(document, one)
