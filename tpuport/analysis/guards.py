"""Which conditions hold where: the tests that dominate a node, and what they say about the accelerator."""

import ast
import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeGuard

from tpuport.analysis.module import Module, dotted
from tpuport.analysis.scopes import Binding, Kind

CUDA_AVAILABLE = "torch.cuda.is_available"
ACCELERATOR_AVAILABLE = "torch.accelerator.is_available"
FLAG_NAME = re.compile(r"cuda|gpu|device", re.IGNORECASE)
"""Names of variables that say whether CUDA is used."""

ASKED = (ast.Name, ast.Attribute, ast.Call)
"""Expressions that may be a flag, or a function of the file that answers."""

TERMINATORS = {"sys.exit", "os._exit", "exit", "quit"}


@dataclass(frozen=True, slots=True)
class Condition:
    """An expression known to be true (`holds`) or false where the node in question runs."""

    test: ast.expr
    holds: bool


def atoms(test: ast.expr, holds: bool) -> Iterator[Condition]:
    """What follows for the parts of `test`, taken apart at `not`, `and` and `or`."""
    match test:
        case ast.Name() | ast.Attribute():
            yield Condition(test, holds)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from atoms(operand, not holds)
        case ast.BoolOp(op=ast.And(), values=values) if holds:
            for value in values:
                yield from atoms(value, True)
        case ast.BoolOp(op=ast.Or(), values=values) if not holds:
            for value in values:
                yield from atoms(value, False)
        case ast.NamedExpr(value=value):
            yield Condition(test, holds)
            yield from atoms(value, holds)
        case ast.IfExp(test=inner, body=ast.Constant(value=yes), orelse=ast.Constant(value=no)) if bool(yes) != bool(
            no
        ):
            yield from atoms(inner, holds is bool(yes))
        case ast.Call(func=ast.Name(id="bool" | "int"), args=[inner], keywords=[]):
            yield from atoms(inner, holds)
        case ast.Compare(left=inner, ops=[ast.Is() | ast.Eq()], comparators=[ast.Constant(value=bool(wanted))]):
            yield from atoms(inner, holds is wanted)
        case _:
            yield Condition(test, holds)


def ends_block(module: Module, body: list[ast.stmt]) -> bool:
    """Whether control never runs past the end of `body`."""
    last = body[-1]
    if isinstance(last, ast.Return | ast.Raise | ast.Continue | ast.Break):
        return True
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return (module.callee(last.value) or dotted(last.value.func)) in TERMINATORS
    return (
        isinstance(last, ast.If)
        and bool(last.orelse)
        and all(ends_block(module, part) for part in (last.body, last.orelse))
    )


def alternatives(condition: Condition) -> Iterator[Condition]:
    """The conditions of which at least one holds: the operands of a true `or` or a false `and`."""
    if isinstance(condition.test, ast.BoolOp):
        for value in condition.test.values:
            for atom in atoms(value, condition.holds):
                yield from alternatives(atom)
    else:
        yield condition


def _until(nodes: list[ast.expr], end: ast.AST) -> Iterator[ast.expr]:
    return itertools.takewhile(lambda node: node is not end, nodes)


def blocks(parent: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements that a statement or module holds."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list):
            yield block


def conditions(module: Module, node: ast.AST) -> Iterator[Condition]:
    """Every condition that dominates `node`: enclosing tests, earlier operands, early exits and assertions."""
    for child, parent in module.ancestors(node):
        yield from _conditions_of(module, child, parent)


def _conditions_of(module: Module, child: ast.AST, parent: ast.AST) -> Iterator[Condition]:
    """The conditions under which `parent`, where that runs, gets to `child`."""
    match parent:
        case ast.If(test=test, body=body, orelse=orelse):
            if child in body:
                yield from atoms(test, True)
            elif child in orelse:
                yield from atoms(test, False)
        case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[*_, last]), body=body) if child in body:
            yield from atoms(last, True)
        case ast.While(test=test, body=body) if child in body:
            yield from atoms(test, True)
        case ast.IfExp(test=test):
            if child is parent.body:
                yield from atoms(test, True)
            elif child is parent.orelse:
                yield from atoms(test, False)
        case ast.BoolOp(op=op, values=values):
            for value in _until(values, child):
                yield from atoms(value, isinstance(op, ast.And))
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if child in parent.body:
            for decorator in parent.decorator_list:
                yield from _unless_skipped(decorator)
        case ast.comprehension(ifs=ifs):
            if child in ifs:
                for test in _until(ifs, child):
                    yield from atoms(test, True)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            if child not in parent.generators:
                for generator in parent.generators:
                    for test in generator.ifs:
                        yield from atoms(test, True)
    if isinstance(child, ast.stmt):
        for block in blocks(parent):
            if child in block:
                yield from _before(module, block[: block.index(child)])


def _conditions_of_use(child: ast.AST, parent: ast.AST) -> Iterator[Condition]:
    """The conditions under which a test gets the values that `child` lists for it."""
    match parent:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if child in parent.decorator_list:
            for decorator in parent.decorator_list:
                yield from _unless_skipped(decorator)
        case ast.Call(func=function, args=values, keywords=keywords) if child in values and _last(function) == "param":
            for marks in (keyword.value for keyword in keywords if keyword.arg == "marks"):
                for mark in marks.elts if isinstance(marks, ast.List | ast.Tuple) else [marks]:
                    yield from _unless_skipped(mark)


SKIPS = {"skipIf": False, "skipif": False, "xfail": False, "skipUnless": True}
"""Decorators of tests, with what their first argument must be for the test to run."""


def _unless_skipped(decorator: ast.expr) -> Iterator[Condition]:
    if is_skip(decorator):
        yield from atoms(decorator.args[0], SKIPS[_last(decorator.func)])
    elif isinstance(decorator, ast.Name | ast.Attribute) and ".mark." not in dotted(decorator):
        yield Condition(decorator, True)  # a variable that holds such a decorator is a flag


def is_skip(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether a call skips a test, or expects it to fail, on a condition."""
    return isinstance(node, ast.Call) and bool(node.args) and _last(node.func) in SKIPS


def _last(function: ast.expr) -> str:
    return dotted(function).rpartition(".")[2]


def _before(module: Module, earlier: list[ast.stmt]) -> Iterator[Condition]:
    for statement in earlier:
        if isinstance(statement, ast.Assert):
            yield from atoms(statement.test, True)
        elif isinstance(statement, ast.If):
            if ends_block(module, statement.body):
                yield from atoms(statement.test, False)
            elif statement.orelse and ends_block(module, statement.orelse):
                yield from atoms(statement.test, True)


@dataclass(frozen=True, slots=True)
class FlagKey:
    """A variable that holds a test's result: a name in one scope, or a dotted attribute in the whole module."""

    scope: int
    text: str


def flag_key(module: Module, node: ast.expr) -> FlagKey | None:
    """The key of a name or attribute that may be a flag, or of a call of a function of the file that may answer."""
    if isinstance(node, ast.Call):
        return _answer_key(dotted(node.func)) if not node.args and not node.keywords else None
    if isinstance(node, ast.Name):
        found = module.scopes[node].lookup(node.id)
        return FlagKey(id(found[0]), node.id) if found else None
    text = dotted(node)
    return FlagKey(0, text) if text and not module.qualified(node) else None


def _answer_key(function: str) -> FlagKey | None:
    """The key of what a function or method of the file answers, by its name alone."""
    owner, _, name = function.rpartition(".")
    return FlagKey(0, f"{name}()") if name and owner in ("", "self", "cls") else None


def answer(function: ast.FunctionDef) -> ast.expr | None:
    """What a function without arguments of its own always answers: the value of its only `return`."""
    last = function.body[-1]
    if not isinstance(last, ast.Return) or function.decorator_list:
        return None
    arguments = [a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
    return last.value if arguments in ([], ["self"], ["cls"]) and returns == [last] else None


ACCELERATOR_COMPARISON = {"cuda", "cuda:0"}


COUNT = "torch.cuda.device_count"


def truth(test: ast.expr) -> ast.expr:
    """What must be true for a comparison of a number to be: `n` for `n > 0`, `n >= 1`, `n != 0`; else the test."""
    match test:
        case ast.Compare(left=left, ops=[ast.Gt() | ast.NotEq()], comparators=[ast.Constant(value=int(least))]):
            return left if least >= 0 and type(least) is int else test
        case ast.Compare(left=left, ops=[ast.GtE()], comparators=[ast.Constant(value=int(least))]):
            return left if least >= 1 and type(least) is int else test
    return test


def compares_with_cuda(node: ast.AST) -> bool | None:
    """Whether a test is true for CUDA (`d.type == 'cuda'`, `t.is_cuda`, `x == 'nccl'`, an
    `isinstance` of a tensor type), or false (`!=`), or None."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            names = any(_names_cuda(side) or _names_nccl(side) for side in (left, right))
            if isinstance(op, ast.Eq | ast.NotEq) and names:
                return isinstance(op, ast.Eq)
            if isinstance(op, ast.In | ast.NotIn) and _names_cuda(left):
                return isinstance(op, ast.In)
        case ast.Call(func=ast.Attribute(attr="startswith"), args=[prefix]) if _names_cuda(prefix):
            return True
        case ast.Attribute(attr="is_cuda", ctx=ast.Load()):
            return True
        case ast.Call() if cuda_tensor_types(node):
            return True
    return None


CUDA_TENSOR = re.compile(r"(^|\.)cuda\.((Float|Double|Half|BFloat16|Long|Int|Short|Char|Byte|Bool)Tensor)$")


def cuda_tensor_types(test: ast.AST) -> list[str]:
    """`FloatTensor` for `isinstance(x, torch.cuda.FloatTensor)`, and so on; nothing if it asks for other types too."""
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[value, kinds], keywords=[]) if dotted(value):
            listed = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
            found = [CUDA_TENSOR.search(dotted(kind)) for kind in listed]
            return [kind[2] for kind in found if kind] if all(found) else []
    return []


def _names_cuda(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in ACCELERATOR_COMPARISON


def _names_nccl(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in ("nccl", "NCCL")


def _asks_for_nccl(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and tests_nccl(node)


def tests_nccl(node: ast.AST) -> bool:
    """Whether a test is one of the communication library: it is never true on a TPU, and has nothing to become."""
    if isinstance(node, ast.Compare):
        return any(_names_nccl(side) for side in (node.left, *node.comparators))
    return isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] == "is_nccl_available"


Flags = dict[tuple[FlagKey, bool], list[ast.expr]]
"""For a variable and a truth value, the tests that must have come out true when the variable has that value."""


def flags(module: Module, assignments: list[tuple[FlagKey, ast.expr]], is_test: Callable[[Condition], bool]) -> Flags:
    """Variables whose truth, or falsehood, follows from tests that `is_test` knows.

    A flag may be passed on (`use = flag and not args.cpu`), so the search goes on until nothing new is found.
    """
    parts = [
        ((key, holds), part)
        for key, value in assignments
        for holds in (True, False)
        for condition in atoms(value, holds)
        if (part := _part(module, condition, is_test)) is not None
    ]
    found: Flags = {}
    size = -1
    while size != sum(map(len, found.values())):
        size = sum(map(len, found.values()))
        for flag, part in parts:
            for source in [part] if isinstance(part, ast.expr) else list(found.get(part, [])):
                known = found.setdefault(flag, [])
                if source not in known:
                    known.append(source)
    return found


def _part(
    module: Module, condition: Condition, is_test: Callable[[Condition], bool]
) -> ast.expr | tuple[FlagKey, bool] | None:
    """The test that a condition is, or else the flag that it asks."""
    if is_test(condition):
        return truth(condition.test)
    inner = flag_key(module, condition.test) if isinstance(condition.test, ASKED) else None
    return (inner, condition.holds) if inner is not None else None


def _said_by(value: ast.expr) -> ast.expr:
    """What a flag with that value says: one that holds a decorator for tests says whether those run."""
    if not is_skip(value):
        return value
    return value.args[0] if SKIPS[_last(value.func)] else ast.UnaryOp(ast.Not(), value.args[0])


def _assignments(module: Module) -> Iterator[tuple[FlagKey, ast.expr]]:
    for scope in module.own_scopes.values():
        for name, bindings in scope.bindings.items():
            for binding in bindings:
                if binding.kind is Kind.ASSIGN and binding.value is not None and _is_plain(bindings):
                    said = _said_by(binding.value)
                    yield FlagKey(id(scope), name), said
                    if isinstance(scope.node, ast.ClassDef):
                        yield FlagKey(0, f"self.{name}"), said
                        yield FlagKey(0, f"{scope.node.name}.{name}"), said
    for node in module.of_type(ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Attribute) and (text := dotted(target)):
                yield FlagKey(0, text), node.value
    functions: list[ast.FunctionDef] = module.of_type(ast.FunctionDef)
    named = Counter(function.name for function in functions)
    for function in functions:
        value, key = answer(function), _answer_key(function.name)
        if value is not None and key is not None and named[function.name] == 1:
            yield key, value


def _is_plain(bindings: list[Binding]) -> bool:
    return all(binding.kind in (Kind.ASSIGN, Kind.PARAMETER) for binding in bindings)


class Guards:
    """Answers what the tests around a node say about CUDA and the accelerator."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._around: dict[ast.AST, list[ast.expr]] = {}

    @cached_property
    def _assignments(self) -> list[tuple[FlagKey, ast.expr]]:
        return list(_assignments(self.module))

    @cached_property
    def _cuda_flags(self) -> Flags:
        if not self._tests:
            return {}
        return flags(self.module, [*self._assignments, *self._passed_on()], self._tests_cuda)

    @cached_property
    def _accelerator_flags(self) -> Flags:
        if not self.module.calls_of(ACCELERATOR_AVAILABLE):
            return {}
        return flags(self.module, self._assignments, self._tests_accelerator)

    @cached_property
    def _values(self) -> dict[FlagKey, list[ast.expr]]:
        """Everything that is assigned to a flag."""
        found: dict[FlagKey, list[ast.expr]] = {}
        for key, value in self._assignments:
            found.setdefault(key, []).append(value)
        return found

    def _passed_on(self) -> Iterator[tuple[FlagKey, ast.expr]]:
        """Parameters count as set from the variable of the same name, wherever in the module that one is set."""
        named: dict[str, list[ast.expr]] = {}
        for key, value in self._assignments:
            if key.scope:
                named.setdefault(key.text, []).append(value)
        for scope in self.module.own_scopes.values():
            for name, bindings in scope.bindings.items():
                if name in named and all(binding.kind is Kind.PARAMETER for binding in bindings):
                    yield from ((FlagKey(id(scope), name), value) for value in named[name])

    def _tests_cuda(self, condition: Condition) -> bool:
        if truth(condition.test) not in self._tests:
            return False
        if self.tests_availability(condition.test) or _asks_for_nccl(condition.test):
            return condition.holds
        if self.counts_devices(condition.test):
            return condition.holds
        return compares_with_cuda(condition.test) is condition.holds

    def _tests_accelerator(self, condition: Condition) -> bool:
        test = condition.test
        return condition.holds and isinstance(test, ast.Call) and self.module.callee(test) == ACCELERATOR_AVAILABLE

    def _flag(self, condition: Condition, known: Flags) -> list[ast.expr]:
        test = truth(condition.test)
        if not isinstance(test, ASKED):
            return []
        key = flag_key(self.module, test)
        return known.get((key, condition.holds), []) if key else []

    def cuda_sources(self, condition: Condition) -> list[ast.expr]:
        """The tests for CUDA that a condition goes back to, directly or through flags: availability, device type."""
        return [truth(condition.test)] if self._tests_cuda(condition) else self._flag(condition, self._cuda_flags)

    def cuda_tests(self, node: ast.AST) -> list[ast.expr]:
        """The tests for CUDA that have a say in whether `node` runs, also as one of several reasons for it to."""
        parent = self.module.parents.get(node)
        if parent is None or not self._tests:
            return []
        if node not in self._around:
            own = [
                test
                for condition in (*_conditions_of(self.module, node, parent), *_conditions_of_use(node, parent))
                for part in alternatives(condition)
                for test in self.cuda_sources(part)
            ]
            outer = self.cuda_tests(parent)
            self._around[node] = [*own, *outer] if own else outer
        return self._around[node]

    def has_accelerator(self, node: ast.AST) -> bool:
        """Whether some accelerator is known to be there where `node` runs, once the tests around it have moved."""
        if not self._tests and not self.module.calls_of(ACCELERATOR_AVAILABLE):
            return False
        return any(self.proves_accelerator(condition) for condition in conditions(self.module, node))

    def tests_absence(self, condition: Condition) -> bool:
        """Whether a condition says that no accelerator is there, once a test of availability has moved."""
        test = condition.test
        asked = self.tests_availability(test) or (
            isinstance(test, ast.Call) and self.module.callee(test) == ACCELERATOR_AVAILABLE
        )
        return asked and not condition.holds

    def knows_accelerators(self, node: ast.AST) -> bool:
        """Whether `node` runs only after a test of `torch.accelerator`, so that what it asks of CUDA is deliberate."""
        if not self.module.calls_of(ACCELERATOR_AVAILABLE):
            return False
        return any(
            self._tests_accelerator(condition) or self._flag(condition, self._accelerator_flags)
            for condition in conditions(self.module, node)
        )

    def asks_both(self, test: ast.expr) -> bool:
        """Whether the condition that `test` is a part of asks `torch.accelerator` too."""
        whole: ast.AST = test
        while isinstance(parent := self.module.parents.get(whole), ast.BoolOp | ast.UnaryOp):
            whole = parent
        calls = (node for node in ast.walk(whole) if isinstance(node, ast.Call))
        return any(self.module.callee(call) == ACCELERATOR_AVAILABLE for call in calls)

    def proves_accelerator(self, condition: Condition, depth: int = 0) -> bool:
        """Whether a condition can only come about where an accelerator is there; every value of a flag is looked at."""
        if self._tests_accelerator(condition) or self._tests_cuda(condition):
            return True
        if not isinstance(condition.test, ASKED) or depth > 3:
            return False
        key = flag_key(self.module, condition.test)
        values = self._values.get(key, []) if key else []
        return (
            bool(values)
            and not self._is_parameter(condition.test)
            and all(
                (isinstance(value, ast.Constant) and bool(value.value) is not condition.holds)
                or any(self.proves_accelerator(part, depth + 1) for part in atoms(value, condition.holds))
                for value in values
            )
        )

    def _is_parameter(self, node: ast.expr) -> bool:
        found = self.module.lookup(node) if isinstance(node, ast.Name) else None
        return found is not None and any(binding.kind is Kind.PARAMETER for binding in found[1])

    def kept_in(self, test: ast.expr) -> tuple[str, ...]:
        """Names of the variables, without what they are attributes of, whose truth goes back to `test`."""
        names = {key.text.rpartition(".")[2] for (key, _), sources in self._cuda_flags.items() if test in sources}
        return tuple(sorted(names))

    def open_flags(self, node: ast.AST) -> tuple[str, ...]:
        """Names of the variables that decide whether `node` runs and that no test in this file stands behind."""
        found = set()
        for condition in conditions(self.module, node):
            test = truth(condition.test)
            if isinstance(test, ast.Name | ast.Attribute) and not self.cuda_sources(condition):
                name = dotted(test).rpartition(".")[2]
                if FLAG_NAME.search(name):
                    found.add(name)
        return tuple(sorted(found))

    def flag_groups(self) -> list[list[ast.expr]]:
        """For each flag, the tests that it goes back to."""
        return list(self._cuda_flags.values())

    def answers(self, test: ast.expr, returned: ast.Return) -> bool:
        """Whether a test is what a function of the file answers that guards code of this file."""
        function = self.module.function(returned)
        if not isinstance(function, ast.FunctionDef) or answer(function) is not returned.value:
            return False
        key = _answer_key(function.name)
        known = any(test in self._cuda_flags.get((key, holds), []) for holds in (True, False)) if key else False
        return known and any(flag_key(self.module, call) == key for call in self.module.of_type(ast.Call))

    def is_followed(self, test: ast.expr, assigned: ast.stmt) -> bool:
        """Whether the assignment of a test's result makes a flag that is known as such."""
        targets = assigned.targets if isinstance(assigned, ast.Assign) else [getattr(assigned, "target", None)]
        keys = [flag_key(self.module, t) for t in targets if isinstance(t, ast.Name | ast.Attribute)]
        known = {key for (key, _), sources in self._cuda_flags.items() if test in sources}
        return len(keys) == len(targets) and all(key in known for key in keys)

    def tests_availability(self, test: ast.AST) -> bool:
        """Whether `test` itself is a call of `torch.cuda.is_available`."""
        return isinstance(test, ast.Call) and self.module.callee(test) == CUDA_AVAILABLE

    def counts_devices(self, test: ast.AST) -> bool:
        """Whether `test` is a call of `torch.cuda.device_count`, or a comparison that needs it to be more than 0."""
        call = truth(test) if isinstance(test, ast.expr) else test
        return isinstance(call, ast.Call) and self.module.callee(call) == COUNT

    def tests(self) -> Collection[ast.expr]:
        """Every test for CUDA in the module, in source order."""
        return self._tests.keys()

    @cached_property
    def _tests(self) -> dict[ast.expr, None]:
        """The tests as the keys of a dictionary, which looks them up and keeps their order."""
        module = self.module
        if not any(word in module.source for word in ("cuda", "nccl", "NCCL")):
            return {}
        compared: list[ast.expr] = [
            *module.of_type(ast.Compare),
            *module.calls_by_method.get("startswith", []),
            *module.attributes_by_name.get("is_cuda", []),
            *module.calls_by_function.get("isinstance", []),
        ]
        found = {
            *module.calls_of(CUDA_AVAILABLE, COUNT),
            *filter(tests_nccl, module.calls_named("is_nccl_available")),
            *(node for node in compared if compares_with_cuda(node) is not None and not self._is_method(node)),
        }
        return dict.fromkeys(module.in_order(found))

    def _is_method(self, node: ast.expr) -> bool:
        """Whether it is called: `x.is_cuda()` asks a class of the project's own."""
        parent = self.module.parents.get(node)
        return isinstance(parent, ast.Call) and parent.func is node
