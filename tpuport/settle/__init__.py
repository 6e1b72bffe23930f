"""Settles the drafts of one module: tests for CUDA move together with the code that they guard, or not at all."""

import ast
from collections.abc import Iterable, Iterator

from tpuport.analysis.branches import Branches
from tpuport.analysis.guards import ACCELERATOR_AVAILABLE, CUDA_AVAILABLE, tests_nccl, truth
from tpuport.analysis.module import dotted
from tpuport.draft import Context, Draft, Role
from tpuport.mapping import CUDA_THERE
from tpuport.model import Finding, GuardStatement, Rename, Rule, Safety, Severity
from tpuport.settle import comparison, together
from tpuport.settle.chains import Chain, Chains
from tpuport.settle.hold import Holds
from tpuport.settle.reasons import HOLDS, MAPS_AWAY, ONE_DEVICE, TELLS_OF_CUDA, Reasons

PRINTS = {"print", "info", "debug", "warning", "warn"}
NONE_WITHOUT_CUDA = {"torch.version.cuda"}
NONE = "it is None without CUDA, and so told"
RAISES_WITHOUT_CUDA = {
    "torch.cuda.get_device_properties",
    "torch.cuda.get_device_capability",
    "torch.cuda.memory_summary",
    "torch.cuda.memory_snapshot",
    "torch.cuda.utilization",
    "torch.cuda.temperature",
    "torch.cuda.power_draw",
    "torch.cuda.clock_rate",
}
"""Reports of CUDA that can be left to CUDA where they are only printed: without it, printing them failed."""


def settle(context: Context, drafts: Iterable[Draft], availability: Rule, comparison: Rule) -> list[Finding]:
    """Turn the drafts of all checks into findings, with the tests for CUDA around them moved or kept."""
    return Settlement(context, list(drafts), availability, comparison).findings()


class Settlement:
    """One module's drafts on their way to findings."""

    def __init__(self, context: Context, drafts: list[Draft], availability: Rule, comparison: Rule) -> None:
        self.context = context
        self.module = context.module
        self.guards = context.guards
        self.drafts = drafts
        self.availability = availability
        self.comparison = comparison
        self.holds = Holds(context)
        moving = [draft.node for draft in drafts if draft.role is Role.MOVES]
        self.branches = Branches(self.module, self.guards, [draft.node for draft in drafts], moving)
        self._chain_of: dict[int, int] = {}

    def findings(self) -> list[Finding]:
        """All findings of the module, in source order."""
        for draft in self.drafts:
            if reason := self.holds.reason(draft):
                draft.edits = draft.own_guard = ()
                draft.role, draft.reason = Role.BLOCKS, reason
            if draft.role is Role.BLOCKS:
                self._guard_output(draft)
        self._leave_arguments()
        together.hold(self.context, self.drafts)
        chains = Chains(self.context, self.drafts, self.branches).build()
        reasons = Reasons(self.context, self.drafts, self.branches, self.holds, self.availability.min_torch)
        kept: set[int] = set()
        inner_first = sorted(chains, key=lambda chain: max(map(self.module.span, chain.tests)), reverse=True)
        for chain in inner_first:
            chain.drafts = [draft for draft in chain.drafts if id(draft) not in kept]
            chain.block_what_needs_cuda()
            reason = reasons.why_it_stays(chain)
            if reason:
                self._keep(chain, reason)
                kept.update(id(draft) for draft in chain.drafts)
            else:
                self._move(chain)
        for draft in self.drafts:
            if draft.role is Role.CUDA_ONLY and id(draft) not in kept:
                draft.edits += draft.own_guard
        self.drafts = self._outside_own_guards()
        together.join(self.context, self.drafts, self._chain_of)
        found = map(self._finding, self._one_a_site())
        return sorted(found, key=lambda finding: (finding.span, finding.code))

    def _leave_arguments(self) -> None:
        """What names a device to a call of CUDA's that stays is right there."""
        staying = {
            draft.node
            for draft in self.drafts
            if draft.role in (Role.BLOCKS, Role.CUDA_ONLY) and not (draft.edits or draft.own_guard)
        }
        calls = [call for call in self.module.of_type(ast.Call) if call.func in staying]
        inside = {node for call in calls for argument in (*call.args, *call.keywords) for node in ast.walk(argument)}
        for draft in self.drafts:
            if draft.rule.name == "device-literal" and draft.edits and draft.node in inside:
                draft.edits = ()
                draft.role, draft.severity = Role.NEUTRAL, Severity.INFO
                draft.reason = "it goes to a function of CUDA's, which stays"

    def _outside_own_guards(self) -> list[Draft]:
        """The drafts without those of a statement that another puts under a test for CUDA, where they are right."""
        kept = [
            edit.span
            for draft in self.drafts
            for edit in draft.edits
            if isinstance(edit, GuardStatement) and edit.condition == CUDA_THERE
        ]

        def is_inside(draft: Draft) -> bool:
            return any(span.contains(self.module.span(draft.node)) for span in kept)

        return [draft for draft in self.drafts if draft.edits or not is_inside(draft)] if kept else self.drafts

    def _one_a_site(self) -> Iterator[Draft]:
        """The drafts without those that only repeat what another says of the same node."""
        best: dict[ast.AST, Draft] = {}
        for draft in self.drafts:
            known = best.get(draft.node)
            if known is None or (bool(draft.edits), bool(draft.reason)) > (bool(known.edits), bool(known.reason)):
                best[draft.node] = draft
        yield from (d for d in self.drafts if best[d.node] is d or (d.edits and d.edits != best[d.node].edits))

    def _guard_output(self, draft: Draft) -> None:
        """A line that only prints can be left to CUDA alone, or says what is not there."""
        if self.module.qualified(draft.node) in NONE_WITHOUT_CUDA and self._is_told(draft.node):
            draft.role, draft.severity, draft.reason = Role.NEUTRAL, Severity.INFO, NONE
            return
        statement = self.module.statement(draft.node)
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call) or draft.edits:
            return
        name = dotted(statement.value.func).rpartition(".")[2]
        if name in PRINTS and self.module.qualified(draft.node) in RAISES_WITHOUT_CUDA:
            draft.role = Role.CUDA_ONLY
            draft.own_guard = (GuardStatement(self.module.span(statement), CUDA_THERE),)

    def _is_told(self, node: ast.AST) -> bool:
        """Whether a value goes into a text of its own accord, or to what prints or logs it."""
        match self.module.parents[node]:
            case ast.FormattedValue(format_spec=None):
                return True
            case ast.Call(func=func, args=args) if node in args:
                name = dotted(func).rpartition(".")[2]
                return name in PRINTS or name in ("str", "format") or name.startswith("print")
        return False

    def _move(self, chain: Chain) -> None:
        for draft in chain.drafts:
            self._chain_of[id(draft)] = chain.number
        for test in chain.tests:
            if self.guards.counts_devices(test):
                continue  # the rule of the device count rewrites it
            draft = self._moved(chain, test)
            self._chain_of[id(draft)] = chain.number
            self.drafts.append(draft)

    def _moved(self, chain: Chain, test: ast.expr) -> Draft:
        if isinstance(test, ast.Call) and self.guards.tests_availability(test):
            edit = Rename(self.module.span(test.func), CUDA_AVAILABLE, ACCELERATOR_AVAILABLE)
            return Draft(self.availability, test, Role.MOVES, (edit,))
        compared, unsafe = comparison.moved(self.module, test, chain)
        safety = Safety.UNSAFE if unsafe else None
        return Draft(self.comparison, test, Role.MOVES, (compared,), reason=unsafe, safety=safety)

    def _keep(self, chain: Chain, reason: str) -> None:
        """Leave the tests and all that they guard; what would put a TPU host on its CPU is an error."""
        right = reason in (HOLDS, ONE_DEVICE, MAPS_AWAY, TELLS_OF_CUDA)
        counted = ((truth(test), test) for test in chain.tests if self.guards.counts_devices(test))
        counts: dict[ast.AST, ast.expr] = {call.func: test for call, test in counted if isinstance(call, ast.Call)}
        guarded = [draft for draft in chain.drafts if draft.node not in counts]
        places = not right and any(map(self._places_data, guarded))
        for test in chain.tests:
            if tests_nccl(test) or self.guards.counts_devices(test):
                continue  # the rules of the NCCL backend and of the device count speak for it
            rule = self.availability if self.guards.tests_availability(test) else self.comparison
            severity = Severity.INFO if right else self._severity_when_kept(chain, test, places)
            self.drafts.append(Draft(rule, test, Role.NEUTRAL, reason=reason, severity=severity))
        line = self.module.span(chain.tests[0]).line
        for draft in chain.drafts:
            if draft.node in counts and (guarded or chain.suspects):
                draft.severity = self._severity_when_kept(chain, counts[draft.node], places)
            if draft.role is Role.MOVES and draft.edits:
                draft.edits = ()
                draft.reason = f"it stays with the test for CUDA on line {line}: {reason}"
                draft.severity = Severity.INFO if right else draft.severity
            elif draft.role in (Role.BLOCKS, Role.CUDA_ONLY) and not (draft.edits or places or draft.node in counts):
                draft.severity = Severity.INFO

    def _places_data(self, draft: Draft) -> bool:
        """Whether a draft decides where tensors live or how they are computed, so that leaving it costs the TPU."""
        severity = draft.severity or draft.rule.severity
        return draft.role in (Role.MOVES, Role.BLOCKS) and severity is Severity.ERROR

    def _severity_when_kept(self, chain: Chain, test: ast.expr, places: bool) -> Severity:
        """What leaving a test costs a TPU: its data, a decision, or nothing, as the branch is passed by there."""
        guards_code = bool(chain.drafts or chain.suspects)
        if guards_code and not places:
            return Severity.INFO
        if not self.guards.tests_availability(test):
            return Severity.INFO if comparison.tests_mode(test) else Severity.WARNING
        if places:
            return Severity.ERROR
        deliberate = self.guards.knows_accelerators(test) or self.guards.asks_both(test)
        return Severity.INFO if deliberate else Severity.WARNING

    def _finding(self, draft: Draft) -> Finding:
        fixable = bool(draft.edits)
        safety = (draft.safety or draft.rule.safety) if fixable else Safety.MANUAL
        if fixable and safety is Safety.MANUAL:
            safety = Safety.SAFE
        severity = draft.severity or draft.rule.severity
        needs_cuda = draft.role is Role.BLOCKS and not draft.edits and severity is not Severity.INFO
        return Finding(
            under=self.guards.open_flags(draft.node) if needs_cuda else (),
            sets=self.guards.kept_in(draft.node) if draft.edits and isinstance(draft.node, ast.expr) else (),
            code=draft.rule.code,
            rule=draft.rule.name,
            message=draft.message or draft.rule.message,
            span=self.module.span(draft.node),
            severity=severity,
            safety=safety,
            edits=draft.edits,
            reason=draft.reason,
            chain=self._chain_of.get(id(draft)),
        )
