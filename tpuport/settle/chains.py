"""Chains: the tests for CUDA that must move together, and what each of them guards."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from tpuport.analysis.branches import Branches
from tpuport.analysis.guards import is_skip
from tpuport.analysis.module import Module, dotted
from tpuport.checks.device_comparison import type_of_device
from tpuport.draft import Context, Draft, Role


@dataclass(eq=False, slots=True)
class Chain:
    """Tests for CUDA that must move together, with the drafts that they guard."""

    number: int
    tests: list[ast.expr]
    drafts: list[Draft] = field(default_factory=list)
    suspects: list[ast.AST] = field(default_factory=list)

    def with_role(self, role: Role) -> list[Draft]:
        """The guarded drafts of one role."""
        return [draft for draft in self.drafts if draft.role is role]

    def block_what_needs_cuda(self) -> None:
        """What is for CUDA alone and can not get a test of its own holds the tests around it back."""
        for draft in self.with_role(Role.CUDA_ONLY):
            if not draft.own_guard and not draft.edits and draft.reason:
                draft.role = Role.BLOCKS


def is_expected(module: Module, test: ast.expr) -> bool:
    """Whether a test is what an `assert` expects, alone or beside others."""
    parent = module.parents[test]
    while isinstance(parent, ast.BoolOp):
        parent = module.parents[parent]
    return isinstance(parent, ast.Assert)


class Chains:
    """Builds the chains of one module from its drafts."""

    def __init__(self, context: Context, drafts: list[Draft], branches: Branches) -> None:
        self.context = context
        self.module = context.module
        self.drafts = drafts
        self.branches = branches

    def build(self) -> list[Chain]:
        """All chains; a draft belongs to each test that has a say in whether it runs."""
        tests = [test for test in self.context.guards.tests() if not self._is_settled(test)]
        if not tests:
            return []
        chains = {test: Chain(number, [test]) for number, test in enumerate(tests)}

        def join(group: list[ast.expr]) -> None:
            known = [chains[test] for test in group if test in chains]
            for other in known[1:]:
                if other is not known[0]:
                    known[0].tests.extend(other.tests)
                    for test in other.tests:
                        chains[test] = known[0]

        for flag in self.context.guards.flag_groups():
            join(flag)
        for test in tests:
            join([test, *self._asked_together(test)])
        counts = [t for t in tests if isinstance(t, ast.Call) and self.context.guards.counts_devices(t)]
        by_callee: dict[ast.AST, ast.expr] = {test.func: test for test in counts}
        for draft in self.drafts:
            for test in self._dominating(draft.node, chains):
                if draft not in chains[test].drafts:
                    chains[test].drafts.append(draft)
        for draft in self.drafts:
            chain = chains[by_callee[draft.node]] if draft.node in by_callee else None
            if chain is not None and draft not in chain.drafts:
                chain.drafts.append(draft)
        for node in [*self.branches.suspects(), *self._calls_of_cuda_functions()]:
            for test in self._innermost(self._dominating(node, chains)):
                if not (isinstance(node, ast.Import | ast.ImportFrom) and self._skips(test)):
                    chains[test].suspects.append(node)
        return list({chain.number: chain for chain in chains.values()}.values())

    def _dominating(self, node: ast.AST, chains: dict[ast.expr, Chain]) -> list[ast.expr]:
        return [test for test in self.context.guards.cuda_tests(node) if test in chains]

    def _innermost(self, tests: list[ast.expr]) -> list[ast.expr]:
        """The first of `tests`, which is the nearest, with those of the same condition."""
        return [test for test in tests if self.module.statement(test) is self.module.statement(tests[0])]

    def _calls_of_cuda_functions(self) -> Iterator[ast.AST]:
        """Calls of functions of this file that hold something with no counterpart."""
        holders = {self.module.function(draft.node) for draft in self.drafts if draft.role is Role.BLOCKS}
        names = {function.name for function in holders if function is not None}
        for call in self.module.of_type(ast.Call) if names else ():
            if dotted(call.func).removeprefix("self.") in names:
                function = self.module.function(call)
                if function is None or function.name not in names:
                    yield call

    def _asked_together(self, test: ast.expr) -> list[ast.expr]:
        """Tests that move with one: of a device, in the condition of an availability test or around it.

        What is asserted of a device is expected where the tests around it let it run, and moves with these.
        """
        guards = self.context.guards
        counts = isinstance(test, ast.Call) and guards.counts_devices(test)
        if not guards.tests_availability(test) and not counts:
            return guards.cuda_tests(test) if is_expected(self.module, test) else []
        top: ast.AST = test
        while isinstance(parent := self.module.parents[top], ast.BoolOp | ast.UnaryOp | ast.Compare):
            top = parent
        if isinstance(parent, ast.Assert) and not counts:
            top = parent  # its message is told where the test fails
        beside = [node for node in ast.walk(top) if isinstance(node, ast.expr) and node in guards.tests()]
        if counts:
            return beside
        around = [other for other in guards.cuda_tests(test) if not guards.tests_availability(other)]
        return [*beside, *around]

    def _skips(self, test: ast.expr) -> bool:
        return any(is_skip(parent) for _, parent in self.module.ancestors(test))

    def _is_settled(self, test: ast.expr) -> bool:
        parent = self.module.parents.get(test)
        return isinstance(parent, ast.IfExp) and type_of_device(parent) is not None
