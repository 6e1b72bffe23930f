"""The engine of the table rules: qualified names matched against every rule's `[map]`, and their verbs applied."""

import ast
from collections.abc import Iterable, Iterator

from tpuport.analysis.branches import OUTPUT_CALLS
from tpuport.analysis.calls import is_unpacked
from tpuport.analysis.module import dotted
from tpuport.draft import Context, Draft, Role
from tpuport.model import (
    DropArgument,
    Edit,
    GuardStatement,
    InsertArgument,
    Mapping,
    Rename,
    Replace,
    Rule,
    SetArgument,
    Severity,
)

ACCELERATOR_THERE = "torch.accelerator.is_available()"
CUDA_THERE = "torch.cuda.is_available()"
NO_CUDA = f"not {CUDA_THERE}"
OTHER_THERE = f"torch.accelerator.is_available() and {NO_CUDA}"


class Table:
    """All names of all table rules, ready for look-up."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = {name: rule for rule in rules if rule.mapping for name in rule.mapping.names}

    def drafts(self, context: Context) -> Iterator[Draft]:
        """A draft for every use of a name in the table; the longest name wins."""
        for use in context.module.uses:
            node: ast.expr = use.node
            name = use.name
            while name not in self._rules and isinstance(node, ast.Attribute):
                node = node.value
                name = context.module.qualified(node)
            if name not in self._rules:
                name = self._reported_whole(name)
            if name:
                yield _draft(context, self._rules[name], node, name, use.name)

    def _reported_whole(self, name: str) -> str:
        """The name of which all is reported and nothing rewritten, that an imported name is a part of; else empty."""
        while name and name not in self._rules:
            name = name.rpartition(".")[0]
        mapping = self._rules[name].mapping if name else None
        return name if mapping is not None and not mapping.names[name] else ""


def _draft(context: Context, rule: Rule, node: ast.expr, name: str, full_name: str) -> Draft:
    mapping = rule.mapping
    assert mapping is not None
    new = mapping.names[name]
    message = rule.message.replace("{name}", name if new else full_name).replace("{new}", new)
    if not new:
        role = Role.NEUTRAL if rule.severity is Severity.INFO else Role.BLOCKS
        return Draft(rule, node, role, message=message)
    role = Role.CUDA_ONLY if mapping.guard == "cuda" else Role.MOVES
    if mapping.guard and isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
        return Draft(rule, node, Role.BLOCKS, message=message, reason="the name is assigned to")
    call = context.module.call_of(node)
    rename = () if new == name else (Rename(context.module.span(node), name, new),)
    changes_arguments = mapping.set_arguments or mapping.drop_arguments or mapping.positional
    if not mapping.guard and not changes_arguments:
        return Draft(rule, node, role, rename, message)
    if call is None and mapping.guard == "accelerator" and _is_chosen(context, node):
        return Draft(rule, node, role, rename, message)
    if call is None:
        reason = "it is passed on without being called, so its call can not be "
        reason += "guarded" if mapping.guard else "changed"
        return Draft(rule, node, Role.BLOCKS, message=message, reason=reason)
    if is_unpacked(call) and changes_arguments:
        return Draft(rule, node, Role.BLOCKS, message=message, reason="its arguments are unpacked from a variable")
    edits = (*rename, *_argument_edits(context, mapping, call))
    return _guarded(context, Draft(rule, node, role, edits, message), mapping, call)


def _is_chosen(context: Context, node: ast.expr) -> bool:
    """Whether a function is one of two that a test for CUDA chooses for a variable, which is called by position."""
    module = context.module
    choice = module.parents[node]
    assigned = module.parents[choice] if isinstance(choice, ast.IfExp) else None
    if not isinstance(assigned, ast.Assign) or not context.guards.has_accelerator(node):
        return False
    names = {dotted(target) for target in assigned.targets}
    return not any(call.keywords for call in module.of_type(ast.Call) if dotted(call.func) in names)


def _argument_edits(context: Context, mapping: Mapping, call: ast.Call) -> Iterator[Edit]:
    span = context.module.span(call)
    for keyword in call.keywords:
        value = context.module.span(keyword.value)
        if keyword.arg in mapping.drop_arguments:
            yield DropArgument(span, value)
        elif keyword.arg in mapping.positional:
            yield DropArgument(span, value)
            yield InsertArgument(span, "{0}", (value,))
    for name, template in mapping.set_arguments.items():
        yield SetArgument(span, name, template)


def statement_guard(context: Context, node: ast.expr, condition: str = CUDA_THERE) -> tuple[Edit, ...]:
    """The edit that puts a statement under `condition` where it only calls what `node` begins, or prints its value.

    Empty where the value goes on.
    """
    module = context.module
    parent = module.parents[node]
    while (isinstance(parent, ast.Attribute) and parent.value is node) or (
        isinstance(parent, ast.Call) and parent.func is node
    ):
        node, parent = parent, module.parents[parent]
    called = isinstance(node, ast.Call) and isinstance(parent, ast.Expr)
    statement = module.statement(node)
    return (GuardStatement(module.span(statement), condition),) if called or _prints(statement) else ()


def _prints(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    return dotted(statement.value.func).rpartition(".")[2] in OUTPUT_CALLS


def _guarded(context: Context, draft: Draft, mapping: Mapping, call: ast.Call) -> Draft:
    """Put the call under a guard where it would raise on a machine that it did not raise on, or that lacks it."""
    span = context.module.span(call)
    if mapping.guard == "cuda":
        draft.own_guard = statement_guard(context, call)
        if not draft.own_guard and mapping.otherwise:
            draft.own_guard = (Replace(span, f"{{0}} if {CUDA_THERE} else {mapping.otherwise}", (span,)),)
        elif not draft.own_guard:
            draft.reason = "its value is used, and there is none without CUDA"
    elif mapping.guard == "accelerator" and not context.guards.has_accelerator(call):
        if context.module.is_bare(call):
            draft.edits += (GuardStatement(context.module.span(context.module.statement(call)), ACCELERATOR_THERE),)
        else:
            otherwise = mapping.otherwise or "None"
            draft.edits += (Replace(span, f"{{0}} if {ACCELERATOR_THERE} else {otherwise}", (span,)),)
    return draft
