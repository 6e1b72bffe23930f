"""The engine of the table rules: qualified names matched against every rule's `[map]`, and their verbs applied."""

import ast
from collections.abc import Iterable, Iterator

from tpuport.analysis.calls import is_unpacked
from tpuport.draft import Context, Draft, Role
from tpuport.model import DropArgument, Edit, GuardStatement, Mapping, Rename, Replace, Rule, SetArgument, Severity

ACCELERATOR_THERE = "torch.accelerator.is_available()"
CUDA_THERE = "torch.cuda.is_available()"


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
            if name in self._rules:
                yield _draft(context, self._rules[name], node, name)


def _draft(context: Context, rule: Rule, node: ast.expr, name: str) -> Draft:
    mapping = rule.mapping
    assert mapping is not None
    new = mapping.names[name]
    message = rule.message.replace("{name}", name).replace("{new}", new)
    if not new:
        role = Role.NEUTRAL if rule.severity is Severity.INFO else Role.BLOCKS
        return Draft(rule, node, role, message=message)
    role = Role.CUDA_ONLY if mapping.guard == "cuda" else Role.MOVES
    if mapping.guard and isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
        return Draft(rule, node, Role.BLOCKS, message=message, reason="the name is assigned to")
    call = context.module.call_of(node)
    rename = () if new == name else (Rename(context.module.span(node), name, new),)
    if not mapping.guard and not mapping.set_arguments and not mapping.drop_arguments:
        return Draft(rule, node, role, rename, message)
    if call is None:
        reason = "it is passed on without being called, so its call can not be guarded"
        return Draft(rule, node, Role.BLOCKS, message=message, reason=reason)
    if is_unpacked(call) and (mapping.set_arguments or mapping.drop_arguments):
        return Draft(rule, node, Role.BLOCKS, message=message, reason="its arguments are unpacked from a variable")
    edits = (*rename, *_argument_edits(context, mapping, call))
    return _guarded(context, Draft(rule, node, role, edits, message), mapping, call)


def _argument_edits(context: Context, mapping: Mapping, call: ast.Call) -> Iterator[Edit]:
    span = context.module.span(call)
    for keyword in call.keywords:
        if keyword.arg in mapping.drop_arguments:
            yield DropArgument(span, context.module.span(keyword.value))
    for name, template in mapping.set_arguments.items():
        yield SetArgument(span, name, template)


def _guarded(context: Context, draft: Draft, mapping: Mapping, call: ast.Call) -> Draft:
    """Put the call under a guard where it would raise on a machine that it did not raise on, or that lacks it."""
    module = context.module
    span = module.span(call)
    if mapping.guard == "cuda":
        if module.is_bare(call):
            draft.own_guard = (GuardStatement(module.span(module.statement(call)), CUDA_THERE),)
        elif mapping.otherwise:
            draft.own_guard = (Replace(span, f"{{0}} if {CUDA_THERE} else {mapping.otherwise}", (span,)),)
        else:
            draft.reason = "its value is used, and there is none without CUDA"
    elif mapping.guard == "accelerator" and not context.guards.has_accelerator(call):
        if module.is_bare(call):
            draft.edits += (GuardStatement(module.span(module.statement(call)), ACCELERATOR_THERE),)
        elif mapping.otherwise:
            draft.edits += (Replace(span, f"{{0}} if {ACCELERATOR_THERE} else {mapping.otherwise}", (span,)),)
    return draft
