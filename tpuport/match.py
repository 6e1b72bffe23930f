"""From one source text to its findings: every rule drafts, then the tests for CUDA around the drafts settle them."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from tpuport import catalog, suppress
from tpuport.analysis.guards import cuda_tensor_types
from tpuport.analysis.module import Module
from tpuport.analysis.places import Scopes
from tpuport.analysis.xla import REDUCTIONS
from tpuport.checks import check_of
from tpuport.draft import Context, Draft, Role
from tpuport.fixes import whole_chains
from tpuport.kinds import PYTHON
from tpuport.mapping import CUDA_THERE, Table
from tpuport.model import Finding, GuardStatement, Project, Replace, Rule, Severity, Span
from tpuport.settle import settle

PACKAGING = "packaging"
INSTALLS = "setup("
"""What a script that installs a package has in it."""

AVAILABILITY = "cuda-availability"
COMPARISON = "device-comparison"
NAMESPACE = "cuda-namespace"
NAMESPACES = {NAMESPACE: "torch.cuda", "xla-namespace": "torch_xla"}
"""Rules for what no other rule speaks of, each with the package it watches."""


@dataclass(frozen=True, slots=True)
class _Book:
    """The rules of a run as matching needs them, worked out once for all files."""

    by_name: dict[str, Rule]
    table: Table
    checks: list[Rule]
    packaging: list[Rule]
    selected: frozenset[str]
    """The codes of the rules that were asked for."""

    @classmethod
    @lru_cache(maxsize=8)
    def of(cls, rules: tuple[Rule, ...]) -> "_Book":
        """All shipped rules and `rules`."""
        everything = catalog.with_shipped(rules)
        python = [rule for rule in everything if PYTHON in rule.files]
        return cls(
            {rule.name: rule for rule in everything},
            Table(python),
            [rule for rule in python if rule.check and rule.area != PACKAGING],
            [rule for rule in python if rule.area == PACKAGING],
            frozenset(rule.code for rule in rules),
        )


def _drafts(context: Context, book: _Book) -> Iterator[Draft]:
    yield from book.table.drafts(context)
    source = context.module.source
    there = cache(source.__contains__)
    for rule in book.checks:
        if not rule.words or any(map(there, rule.words)):
            yield from check_of(rule)(context, rule)
    if INSTALLS in source:
        yield from _packaging(context, book.packaging)


def _packaging(context: Context, rules: Sequence[Rule]) -> Iterator[Draft]:
    """What the rules about packages say of a setup.py, which they read as they do every file that names some."""
    from tpuport.analysis import setup_script

    document, nodes = setup_script.read(context.module)
    for rule in rules:
        for told in check_of(rule)(document, rule):
            node = nodes[told.span]
            severity = told.severity
            yield Draft(rule, node, Role.NEUTRAL, message=told.message, reason=told.reason, severity=severity)


def _unclaimed(context: Context, drafts: Sequence[Draft], rule: Rule, root: str) -> Iterator[Draft]:
    """What is left of the package `root` when every rule has had its say: nothing is passed over in silence."""
    uses = [use for use in context.module.uses if use.name == root or use.name.startswith(root + ".")]
    if not uses:
        return
    claimed = {draft.node for draft in drafts}
    claimed |= {node.func for node in claimed if isinstance(node, ast.Call)}
    tests = context.guards.tests()
    claimed |= {test.func for test in tests if isinstance(test, ast.Call)}
    claimed |= {node for test in tests if cuda_tensor_types(test) for node in ast.walk(test)}
    for use in uses:
        goes_along = use.name in REDUCTIONS and context.module.parents[use.node] in claimed
        if not goes_along and not claimed.intersection(_chain(use.node)):
            yield Draft(rule, use.node, Role.BLOCKS, message=rule.message.replace("{name}", use.name))


def _chain(node: ast.expr) -> Iterator[ast.expr]:
    """An attribute chain and what it begins with: `a.b.c`, `a.b`, `a`."""
    yield node
    while isinstance(node, ast.Attribute):
        node = node.value
        yield node


FOR_CUDA = "it is part of what runs on CUDA alone"


def _kept_for_cuda(context: Context, draft: Draft) -> Iterator[Span]:
    """What a draft keeps for CUDA alone: an expression that it tests for, a statement, or itself."""
    for edit in (*draft.edits, *draft.own_guard):
        if isinstance(edit, Replace) and edit.template.startswith(f"{{0}} if {CUDA_THERE} else"):
            yield from edit.holes
        elif isinstance(edit, GuardStatement) and edit.condition == CUDA_THERE:
            yield edit.span
    if draft.role is Role.CUDA_ONLY and not draft.edits and not draft.own_guard:
        yield context.module.span(draft.node)


def _outside_guards(context: Context, drafts: list[Draft]) -> list[Draft]:
    """The drafts, of which those inside code that another keeps for CUDA alone are right as they stand."""
    kept = [(draft, span) for draft in drafts for span in _kept_for_cuda(context, draft)]
    for draft in drafts if kept else ():
        span = context.module.span(draft.node)
        own = {span, *_kept_for_cuda(context, draft)}
        if any(owner is not draft and hole not in own and hole.contains(span) for owner, hole in kept):
            draft.edits = draft.own_guard = ()
            draft.role, draft.severity, draft.reason = Role.NEUTRAL, Severity.INFO, FOR_CUDA
    return drafts


def match(source: str, project: Project, rules: Sequence[Rule]) -> tuple[Module, list[Finding]]:
    """The parsed module and its findings of `rules` that no comment ignores, in source order.

    All shipped rules take part in settling what can move, so that leaving one out never makes a half-migration:
    a chain with a finding outside `rules`, or with an ignored one, keeps no edits. Raises SyntaxError or ValueError
    when it does not parse.
    """
    module, found = _match(source, project, rules)
    return module, [finding for finding in found if finding.ignored is None]


def findings(source: str, project: Project, rules: Sequence[Rule]) -> list[Finding]:
    """The findings of `rules` in `source`, in source order, with those that a comment ignores; see `match`."""
    return _match(source, project, rules)[1]


def _match(source: str, project: Project, rules: Sequence[Rule]) -> tuple[Module, list[Finding]]:
    module = Module(source)
    context = Context(module, project)
    book = _Book.of(tuple(rules))
    by_name = book.by_name
    drafts = list(_drafts(context, book))
    for name, root in NAMESPACES.items():
        drafts.extend(_unclaimed(context, drafts, by_name[name], root))
    drafts = _outside_guards(context, drafts)
    found = []
    if drafts or context.guards.tests():
        found = settle(context, drafts, by_name[AVAILABILITY], by_name[COMPARISON])
    if suppress.may_apply(source):
        found = suppress.apply(source, found, by_name)
    scopes = Scopes(module)
    return module, [
        replace(finding, scope=scopes.around(finding.span), line_text=module.lines[finding.span.line - 1])
        for finding in whole_chains(found, book.selected)
    ]
