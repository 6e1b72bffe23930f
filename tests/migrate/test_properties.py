"""Random modules of CUDA idioms in random places: what migrate writes settles, keeps what it must, and means the same.

No CUDA machine is needed: a make-believe torch stands for a machine with CUDA, one with a TPU and one with neither. It
logs what it is asked to do, and raises where the real one does.
"""

import ast
import builtins
import contextlib
import io
import symtable
import tokenize
import types
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tpuport import catalog
from tpuport.model import Facts, Project, Severity
from tpuport.rewrite import Rewritten, rewrite

RULES = catalog.load().rules

# The grammar

EXPRESSIONS = (
    'torch.zeros(2).to("cuda" if torch.cuda.is_available() else "cpu").place',
    "(x.cuda() if torch.cuda.is_available() else x).place",
    "(x.cuda(non_blocking=True) if use_cuda else x).place",
    "(x.to('cuda:1') if use_cuda else x).place",
    'torch.ones(\n    1,\n    device="cuda" if use_cuda else "cpu",  # where\n).place',
    "(lambda t, device=None: t.cuda() if torch.cuda.is_available() else t)(x).place",
    "[t.cuda().place if use_cuda else 0 for t, device in ((x, 1),)]",
    "{k: t.cuda().place if use_cuda else 0 for k, t in {'a': x}.items()}",
    "[t.place for t in (x, x) if torch.cuda.memory_allocated() >= 0]",
    "{**torch.cuda.memory_stats()}",
    "(w := torch.cuda.is_available()) and x.cuda().place",
    "torch.cuda.device_count()",
    "torch.cuda.memory_allocated() / 2",
    "torch.cuda.max_memory_allocated() if use_cuda else -1",
    "bool(torch.cuda.is_available())",
    "use_cuda",
    "not use_cuda",
    "x.is_cuda",
    'x.device.type == "cuda"',
    '"cuda" in str(x.device)',
    'f"{torch.cuda.device_count()!r:>4}"',
    '("é漢字", torch.cuda.device_count())[1]',
    "max(  # most\n    torch.cuda.device_count(),  # of these\n    1,\n)",
    "(torch\n    .cuda.is_available())",
    "torch.cuda.empty_cache() if use_cuda else None",
    "x.cuda().place if x.is_cuda else x.place",
)
STATEMENTS = (
    "emit({})",
    "emit({}, {})  # both",
    "y = {}; emit(y)",
    "emit({}); torch.cuda.empty_cache(); emit({})",
    "torch.cuda.empty_cache()  # free",
    "torch.cuda.empty_cache(); torch.cuda.empty_cache();",
    "if use_cuda: torch.cuda.synchronize(); emit({})",
    "z = x.cuda() if use_cuda else x; emit(z.place)",
    'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")',
    'device = "cuda" if use_cuda else "cpu"; emit(x.to(device).place)',
    "with torch.cuda.amp.autocast(enabled=use_cuda): emit({})",
    "with torch.autocast('cuda', enabled=torch.cuda.is_available(), dtype=torch.float16): pass",
    "'a string that stands alone'",
    "assert {} is not emit",
)
ON_CUDA = (
    "x = x.cuda()",
    "z = x.cuda().half(), x.to('cuda')",
    "torch.cuda.synchronize(); t = 1",
    "z = torch.zeros(2, device='cuda')  # there",
    "x.cuda(); torch.cuda.empty_cache()",
    "z = x.to('cuda:1').place",
    "torch.cuda.set_device(0)",
)
TESTS = ("torch.cuda.is_available()", "use_cuda", "use_cuda and torch.cuda.device_count() >= 1", "x.is_cuda")
HEADER = """\
{}import torch
kept = lambda function: function
x = torch.ones(2)
use_cuda = torch.cuda.is_available()
{}
"""


def indented(lines: list[str], by: str) -> list[str]:
    return [by + line for line in lines]


@st.composite
def simple(draw: st.DrawFn, on_cuda: bool) -> list[str]:
    text = draw(st.sampled_from(ON_CUDA if on_cuda else STATEMENTS))
    while "{}" in text:
        text = text.replace("{}", draw(st.sampled_from(EXPRESSIONS)), 1)
    return text.split("\n")


@st.composite
def one_line(draw: st.DrawFn, on_cuda: bool) -> str:
    lines = draw(st.lists(simple(on_cuda), min_size=1, max_size=2))
    fit = [
        line[0] for line in lines if len(line) == 1 and "#" not in line[0] and not line[0].startswith(("if", "with"))
    ]
    return "; ".join(fit) or "pass"


@st.composite
def block(draw: st.DrawFn, depth: int, on_cuda: bool = False) -> list[str]:
    statements = draw(st.lists(statement(depth, on_cuda), min_size=1, max_size=2))
    return [line for lines in statements for line in lines]


@st.composite
def statement(draw: st.DrawFn, depth: int, on_cuda: bool = False) -> list[str]:
    kind = draw(st.integers(0, 12)) if depth else 0
    by = draw(st.sampled_from(["    ", "  ", "\t"]))

    def body(more: bool = on_cuda) -> list[str]:
        return indented(draw(block(depth - 1, more)), by)

    test = draw(st.sampled_from(TESTS))
    match kind:
        case 1:
            return [f"if {test}:  # on CUDA", *body(True), "else:", *body()]
        case 2:
            return [f"if not {test}:", *body(), "else:", *body(True)]
        case 3:
            hidden = draw(st.sampled_from(["", "device=None", "*, use_cuda=use_cuda", "t=0, *rest"]))
            return [
                "@kept  # a decorator",
                f"def run({hidden}):",
                by + "'''doc'''",
                by + "global x, y, z, t, w",
                *body(),
                "run()",
            ]
        case 4:
            return ["class Box:", by + "device = 'cpu'", *body()]
        case 5:
            return ["try:", *body(), "except ValueError as error:", *body(True), "finally:", *body()]
        case 6:
            return ["match 1:", by + "case 1:", *indented(body(), by), by + "case _:", *indented(body(True), by)]
        case 7:
            return [f"if {test}: {draw(one_line(True))}", f"else: {draw(one_line(False))}"]
        case 8:
            return [f"for i in range(2): {draw(one_line(on_cuda))}"]
        case 9:
            return [draw(one_line(on_cuda)) + ";"]
        case 10:
            return [
                "def early():",
                by + "global y, t, w",
                by + "x = torch.ones(1)",
                by + f"if not {test}: return",
                *body(True),
                "early()",
            ]
        case 11:
            return ["def unused(x, device='cpu'): 'doc'; " + draw(one_line(True))]
    return draw(simple(on_cuda))


@st.composite
def modules(draw: st.DrawFn) -> str:
    before = draw(st.sampled_from(["", "'''Module.'''\n", "from __future__ import annotations; import sys\n"]))
    after = draw(st.sampled_from(["device = 'cpu'", "device = torch.device('cuda' if use_cuda else 'cpu')", "y = 0"]))
    return HEADER.format(before, after) + "\n".join(draw(block(2))) + "\n"


# A make-believe torch


class Missing(RuntimeError):
    """What this machine lacks was asked for."""


class Device:
    def __init__(self, type: "str | Device", index: int | None = None) -> None:
        name, _, number = str(type).partition(":")
        self.type, self.index = name, int(number) if number else index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"


def make_torch(there: str, log: list[object]) -> types.SimpleNamespace:
    """The torch of a machine whose accelerator is `cuda` or `tpu`, or that has none (empty)."""

    def place(device: object) -> Device:
        found = Device(str(device))
        if found.type not in ("cpu", there):
            raise Missing(str(device))
        return found if found.type == "cpu" else Device(there, found.index or 0)

    class Tensor:
        def __init__(self, device: object = "cpu") -> None:
            self.device = place(device)

        @property
        def place(self) -> str:
            return str(self.device)

        @property
        def is_cuda(self) -> bool:
            return self.device.type == "cuda"

        def cuda(self, device: object = "cuda", **_options: bool) -> "Tensor":
            return Tensor(device)

        def to(self, device: object, **_options: bool) -> "Tensor":
            return Tensor(device)

        def half(self) -> "Tensor":
            return self

    @contextlib.contextmanager
    def autocast(device_type: str, dtype: object = None, enabled: bool = True) -> Any:
        if device_type not in ("cuda", "cpu", there):
            raise Missing(device_type)
        if enabled and device_type == there:
            log.append(("autocast", dtype or "float16"))
        yield

    def asked(owner: str, name: str, answer: object, harmless: bool) -> Any:
        def function(*_device: object) -> object:
            if there == "cuda" or (owner == "accelerator" and there):
                log.append(name)
            elif not harmless:
                raise Missing(name)
            return answer

        return function

    def module(owner: str, present: bool, harmless: bool) -> types.SimpleNamespace:
        answers = {"memory_allocated": 0, "max_memory_allocated": 0, "memory_stats": {}, "empty_cache": None}
        functions = {name: asked(owner, name, answer, harmless) for name, answer in answers.items()}
        functions["synchronize"] = asked(owner, "synchronize", None, False)
        counted = (2 if there == "cuda" else 1) if present else 0
        return types.SimpleNamespace(is_available=lambda: present, device_count=lambda: counted, **functions)

    cuda = module("cuda", there == "cuda", harmless=True)
    cuda.set_device = asked("cuda", "set_device", None, False)
    cuda.amp = types.SimpleNamespace(autocast=lambda enabled=True, dtype=None: autocast("cuda", dtype, enabled))
    accelerator = module("accelerator", bool(there), harmless=False)
    accelerator.current_accelerator = lambda: Device(there) if there else None

    def make(*_size: int, device: object = "cpu") -> Tensor:
        return Tensor(device)

    return types.SimpleNamespace(
        cuda=cuda,
        accelerator=accelerator,
        device=Device,
        zeros=make,
        ones=make,
        autocast=autocast,
        amp=types.SimpleNamespace(autocast=autocast),
        float16="float16",
        bfloat16="bfloat16",
    )


def run(source: str, there: str) -> tuple[list[object], str]:
    """What a module does on such a machine, and how it fails, if it does."""
    log: list[object] = []
    torch = make_torch(there, log)

    def find(name: str, *rest: Any) -> object:
        return torch if name == "torch" else __import__(name, *rest)

    def emit(*values: object) -> None:
        log.append(repr(values).replace("tpu", "cuda"))

    names = {"__builtins__": {**vars(builtins), "__import__": find}, "__name__": "module", "emit": emit}
    try:
        exec(compile(source, "module", "exec"), names)
    except (Missing, NameError, TypeError, AttributeError, ValueError, AssertionError) as error:
        return log, f"{type(error).__name__}: {error}"
    return log, ""


# The properties


def migrated(source: str) -> Rewritten:
    return rewrite(source, Project("2.11", facts=Facts(selects_device="set_device" in source)), RULES)


def unresolved(source: str) -> set[str]:
    """Names that are read as globals and bound nowhere."""
    top = symtable.symtable(source, "module", "exec")
    read: set[str] = set()
    bound = {"emit", "__class__", *dir(builtins)}
    tables = [top]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            in_module = table is top or symbol.is_global()
            if in_module and (symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()):
                bound.add(symbol.get_name())
            if in_module and symbol.is_referenced():
                read.add(symbol.get_name())
    return read - bound


def kept(source: str) -> Counter[str]:
    """Comments and strings that stand alone."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    found = [token.string for token in tokens if token.type == tokenize.COMMENT]
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                found.append(text)
    return Counter(found)


def parses(source: str) -> bool:
    try:
        compile(source, "module", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def examples(number: int) -> Any:
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(max_examples=number, deadline=None, derandomize=True, database=None, suppress_health_check=slow)


@examples(30)
@given(modules().filter(parses))
def test_result_settles_and_keeps_what_it_must(source: str) -> None:
    done = migrated(source)
    assert parses(done.text)
    assert not unresolved(done.text) - unresolved(source)
    assert not kept(source) - kept(done.text)
    assert migrated(done.text).text == done.text


@pytest.mark.parametrize("there", ["cuda", ""], ids=["cuda", "cpu"])
@examples(30)
@given(source=modules().filter(parses))
def test_does_what_it_did(there: str, source: str) -> None:
    before = run(source, there)
    if not before[1]:
        assert run(migrated(source).text, there) == before


@examples(30)
@given(modules().filter(parses))
def test_runs_on_a_tpu_unless_something_is_left_to_do(source: str) -> None:
    done = migrated(source)
    left = any(finding.severity is not Severity.INFO for finding in done.remaining)
    if not left and not run(source, "cuda")[1]:
        assert run(done.text, "tpu")[1] == ""
