"""Settles the drafts of one module: tests for CUDA move together with the code that they guard, or not at all."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tpuport.analysis.branches import OUTPUT_CALLS, Branches
from tpuport.analysis.devices import default_device_kind
from tpuport.analysis.guards import CUDA_AVAILABLE, SKIPS, conditions, ends_block, tests_nccl
from tpuport.analysis.module import dotted
from tpuport.checks.device_comparison import is_mode, subject, type_of_device
from tpuport.draft import Context, Draft, Role
from tpuport.hold import Holds
from tpuport.model import Edit, Finding, GuardStatement, Rename, Replace, Rule, Safety, Severity, Span

PORTABLE_SPEEDUPS = {"pin_memory", "non_blocking", "fused"}
"""Arguments and methods that pay on any accelerator; each was run on a TPU device."""

PRINTS = {"print", "info", "debug", "warning", "warn"}
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

TELLS_APART = "it tells CUDA from other accelerators"
HANDED_ON = "its value is handed on, and where it goes is not known"
FLAG_NAME = re.compile(r"cuda|gpu|device", re.IGNORECASE)
NCCL = "NCCL exists for CUDA only"
NOT_PLAIN = "what it guards can not be told to mean the same on other accelerators"
OTHER_DEVICES = re.compile(r"[\"'](mps|xpu|npu|hpu|meta|mlu|xla|ipu|dml|directml|vulkan|privateuseone)[\"':]")


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


class Settlement:
    """One module's drafts on their way to findings."""

    def __init__(self, context: Context, drafts: list[Draft], availability: Rule, comparison: Rule) -> None:
        self.context = context
        self.module = context.module
        self.drafts = drafts
        self.availability = availability
        self.comparison = comparison
        self._chain_of: dict[int, int] = {}
        self.holds = Holds(context)
        self.branches = Branches(self.module, context.guards, [draft.node for draft in drafts])

    def findings(self) -> list[Finding]:
        """All findings of the module, in source order."""
        for draft in self.drafts:
            if reason := self.holds.reason(draft):
                draft.edits = draft.own_guard = ()
                draft.role, draft.reason = Role.BLOCKS, reason
            if draft.role is Role.BLOCKS:
                self._guard_output(draft)
        settled: set[int] = set()
        for chain in sorted(self._chains(), key=lambda c: max(map(self._position, c.tests)), reverse=True):
            chain.drafts = [draft for draft in chain.drafts if id(draft) not in settled]
            if not self._settle(chain):
                settled.update(id(draft) for draft in chain.drafts)
        for draft in self.drafts:
            if draft.role is Role.CUDA_ONLY and id(draft) not in settled:
                draft.edits += draft.own_guard
        found = map(self._finding, self._one_a_site())
        return sorted(found, key=lambda finding: (finding.span, finding.code))

    def _one_a_site(self) -> Iterator[Draft]:
        """The drafts without those that only repeat what another says of the same node."""
        best: dict[ast.AST, Draft] = {}
        for draft in self.drafts:
            known = best.get(draft.node)
            if known is None or (bool(draft.edits), bool(draft.reason)) > (bool(known.edits), bool(known.reason)):
                best[draft.node] = draft
        yield from (d for d in self.drafts if best[d.node] is d or (d.edits and d.edits != best[d.node].edits))

    def _position(self, node: ast.AST) -> tuple[int, int]:
        return self.module.span(node)[:2]

    # Chains

    def _chains(self) -> list[Chain]:
        tests = [test for test in self.context.guards.tests() if not self._is_settled(test)]
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
            for test in self._dominating(node, chains)[:1]:
                chains[test].suspects.append(node)
        return list({chain.number: chain for chain in chains.values()}.values())

    def _dominating(self, node: ast.AST, chains: dict[ast.expr, Chain]) -> list[ast.expr]:
        return [test for test in self.context.guards.cuda_tests(node) if test in chains]

    def _calls_of_cuda_functions(self) -> Iterator[ast.AST]:
        """Calls of functions of this file that hold something with no counterpart."""
        holders = {self.module.function(draft.node) for draft in self.drafts if draft.role is Role.BLOCKS}
        names = {function.name for function in holders if function is not None}
        for call in self.module.of_type(ast.Call):
            function = self.module.function(call)
            if dotted(call.func).removeprefix("self.") in names and (function is None or function.name not in names):
                yield call

    def _asked_together(self, test: ast.expr) -> list[ast.expr]:
        """Tests that move with an availability test: of a device, in the same condition or around it."""
        guards = self.context.guards
        if not guards.tests_availability(test):
            return []
        top: ast.AST = test
        while isinstance(parent := self.module.parents[top], ast.BoolOp | ast.UnaryOp):
            top = parent
        beside = [node for node in ast.walk(top) if isinstance(node, ast.expr) and node in guards.tests()]
        around = [other for other in guards.cuda_tests(test) if not guards.tests_availability(other)]
        return [*beside, *around]

    def _is_settled(self, test: ast.expr) -> bool:
        parent = self.module.parents.get(test)
        return isinstance(parent, ast.IfExp) and type_of_device(parent) is not None

    # Decisions

    def _settle(self, chain: Chain) -> bool:
        """Decide one chain; returns whether its tests move."""
        for draft in chain.with_role(Role.CUDA_ONLY):
            if not draft.own_guard and not draft.edits and draft.reason:
                draft.role = Role.BLOCKS
        guards = self.context.guards
        comparisons = [t for t in chain.tests if not guards.tests_availability(t) and not guards.counts_devices(t)]
        reason = self._why_it_stays(chain, comparisons)
        if not reason:
            self._move(chain)
            return True
        self._keep(chain, reason)
        return False

    def _guard_output(self, draft: Draft) -> None:
        """A line that only prints can be left to CUDA alone."""
        statement = self.module.statement(draft.node)
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call) or draft.edits:
            return
        name = dotted(statement.value.func).rpartition(".")[2]
        if name in PRINTS and self.module.qualified(draft.node) in RAISES_WITHOUT_CUDA:
            draft.role = Role.CUDA_ONLY
            draft.own_guard = (GuardStatement(self.module.span(statement), "torch.cuda.is_available()"),)

    def _why_it_stays(self, chain: Chain, comparisons: list[ast.expr]) -> str:
        blocks = chain.with_role(Role.BLOCKS)
        if blocks:
            first = min(blocks, key=lambda draft: self._position(draft.node))
            line = self.module.span(first.node).line
            return f"line {line} has no counterpart that is certain: {first.message or first.rule.message}"
        if any(map(tests_nccl, chain.tests)):
            return NCCL
        if CUDA_AVAILABLE in self.context.replaced and any(map(self.context.guards.tests_availability, chain.tests)):
            return f"the file replaces {CUDA_AVAILABLE} itself, so both have to move together"
        if any(map(self.context.is_scripted, chain.tests)):
            return "TorchScript compiles this function, which does not know the accelerator"
        if chain.suspects:
            return f"line {self.module.span(chain.suspects[0]).line} looks like code for CUDA only"
        if too_old := self.holds.floor(self.availability.min_torch):
            return too_old
        for test in chain.tests:
            if not self.context.guards.counts_devices(test) and (lost := self._where_the_value_goes(test, test)):
                return lost
        if hidden := self._needs_cuda_under_a_flag(chain):
            return hidden
        if any(map(self._asks_again, comparisons)):
            return "the same device is asked about again, for another type"
        if stays := next(filter(None, map(self._producer_that_stays, comparisons)), ""):
            return stays
        return "" if chain.with_role(Role.MOVES) else self._why_it_stays_alone(chain, comparisons)

    def _needs_cuda_under_a_flag(self, chain: Chain) -> str:
        """Why a test that is kept in a variable stays: code that needs CUDA runs under a variable not followed here."""
        guards = self.context.guards
        if not any(isinstance(self.module.statement(test), ast.Assign) for test in chain.tests):
            return ""
        for draft in self.drafts:
            if draft.role is not Role.BLOCKS:
                continue
            for condition in conditions(self.module, draft.node):
                unknown = isinstance(condition.test, ast.Name | ast.Attribute) and not guards.cuda_sources(condition)
                if unknown and FLAG_NAME.search(dotted(condition.test)):
                    line = self.module.span(draft.node).line
                    return f"line {line} needs CUDA under a flag that may be this one"
        return ""

    def _why_it_stays_alone(self, chain: Chain, comparisons: list[ast.expr]) -> str:
        """Why tests stay that guard nothing which moves."""
        if chain.with_role(Role.CUDA_ONLY):
            return "what it guards is for CUDA only"
        if all(map(self.context.guards.knows_accelerators, chain.tests)):
            return TELLS_APART
        if comparisons and not all(map(self._guards_speedup, comparisons)):
            return "whether other accelerators take this branch is for a person to say"
        if not comparisons and not all(self.branches.is_plain(t) or self._demands_cuda(t) for t in chain.tests):
            return NOT_PLAIN
        return ""

    def _producer_that_stays(self, test: ast.expr) -> str:
        """Why a comparison stays: a string that reaches the variable that it looks at stays `cuda`."""
        device = subject(test)
        found = self.module.lookup(device) if isinstance(device, ast.Name) else None
        values = (
            [v for binding in found[1] for v in (binding.value, getattr(binding.node, "iter", None))] if found else []
        )
        named = [self.module.only_value(v) if isinstance(v, ast.Name) else v for v in values]
        inside = {node for value in named if value is not None for node in ast.walk(value)}
        for draft in self.drafts:
            if draft.node in inside and draft.rule.name == "device-literal" and not draft.edits:
                line = self.module.span(draft.node).line
                return f"the text on line {line}, which reaches what it asks about, stays"
        return ""

    def _asks_again(self, test: ast.expr) -> bool:
        """Whether the `if` chain around a comparison asks the same device for a type that is neither's."""
        device = subject(test)
        text = self.module.text(device) if device is not None else ""
        top: ast.AST = test
        while not isinstance(top, ast.stmt):
            top = self.module.parents[top]
        if not isinstance(top, ast.If):
            return False
        while isinstance(parent := self.module.parents[top], ast.If) and parent.orelse == [top]:
            top = parent
        node: ast.AST | None = top
        while isinstance(node, ast.If):
            texts = {p.value for p in ast.walk(node.test) if isinstance(p, ast.Constant) and isinstance(p.value, str)}
            if text and text in self.module.text(node.test) and texts - {"cpu", "cuda", "cuda:0"}:
                return True
            node = node.orelse[0] if len(node.orelse) == 1 else None
        return False

    def _demands_cuda(self, test: ast.expr) -> bool:
        """Whether the test only stops a program without CUDA, in a file where all that is CUDA's can move."""
        for _, parent in self.module.ancestors(test):
            if isinstance(parent, ast.Assert) or (isinstance(parent, ast.If) and ends_block(self.module, parent.body)):
                roles = {draft.role for draft in self.drafts}
                return Role.MOVES in roles and Role.BLOCKS not in roles and not any(self.branches.suspects())
            if isinstance(parent, ast.stmt):
                return False
        return False

    def _guards_speedup(self, test: ast.expr) -> bool:
        """Whether the branch holds only what pays on any accelerator."""
        words = {
            word
            for node in self.module.nodes
            if isinstance(node, ast.Attribute | ast.keyword) and (word := getattr(node, "attr", None) or node.arg)  # type: ignore[union-attr]
            if word in PORTABLE_SPEEDUPS
            and any(test in self.context.guards.cuda_sources(c) for c in conditions(self.module, node))
        }
        return bool(words)

    def _where_the_value_goes(self, node: ast.AST, test: ast.expr) -> str:
        """Why the test's value can not be followed; empty when it decides a branch, a flag or a known argument."""
        parent = self.module.parents[node]
        match parent:
            case ast.BoolOp() | ast.UnaryOp() | ast.NamedExpr() | ast.FormattedValue() | ast.JoinedStr():
                return self._where_the_value_goes(parent, test)
            case ast.If() | ast.While() | ast.Assert() | ast.comprehension() | ast.Expr():
                return ""
            case ast.IfExp(body=ast.Constant(value=bool()), orelse=ast.Constant(value=bool())):
                return self._where_the_value_goes(parent, test)
            case ast.IfExp():
                return "" if node is parent.test else self._where_the_value_goes(parent, test)
            case ast.Assign() | ast.AnnAssign():
                followed = self.context.guards.is_followed(test, parent)
                return "" if followed else "the variable that keeps its value means more than that CUDA is there"
            case ast.keyword(arg=str(name)):
                return self._where_the_argument_goes(parent, name)
            case ast.Call(func=func) if node in parent.args:
                name = dotted(func).rpartition(".")[2]
                if name in ("bool", "int"):
                    return self._where_the_value_goes(parent, test)
                return "" if name in {*OUTPUT_CALLS, *SKIPS, "format", "str"} else HANDED_ON
        return HANDED_ON

    def _where_the_argument_goes(self, keyword: ast.keyword, name: str) -> str:
        call = self.module.parents[keyword]
        if not isinstance(call, ast.Call):
            return HANDED_ON
        function = dotted(call.func).rpartition(".")[2]
        if name == "enabled" and "Scaler" in function:
            return "a gradient scaler works on CUDA only"
        known = self.module.callee(call).startswith("torch.") or function in ("add_argument", *OUTPUT_CALLS)
        return "" if known or name in PORTABLE_SPEEDUPS else HANDED_ON

    def _move(self, chain: Chain) -> None:
        for draft in chain.drafts:
            self._chain_of[id(draft)] = chain.number
        for test in chain.tests:
            if self.context.guards.counts_devices(test):
                continue  # the rule of the device count rewrites it
            rule = self.availability if self.context.guards.tests_availability(test) else self.comparison
            unsafe = self._why_unsafe(test)
            draft = Draft(rule, test, Role.MOVES, (self._test_edit(test, chain),), reason=unsafe)
            draft.safety = Safety.UNSAFE if unsafe else None
            self._chain_of[id(draft)] = chain.number
            self.drafts.append(draft)

    def _why_unsafe(self, test: ast.expr) -> str:
        if self.context.guards.tests_availability(test):
            return ""
        if other := OTHER_DEVICES.search(self.module.source):
            return f"the file also speaks of {other[1]!r} devices, for which the answer would change too"
        return ""

    def _test_edit(self, test: ast.expr, chain: Chain) -> Edit:
        module = self.module
        span = module.span(test)
        if isinstance(test, ast.Call) and self.context.guards.tests_availability(test):
            return Rename(module.span(test.func), "torch.cuda.is_available", "torch.accelerator.is_available")
        device = subject(test)
        assert device is not None
        hole = (module.span(device),)
        parent = module.parents[test]
        if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
            opposite = self._opposite(test, device)
            if opposite is not None:
                return Replace(module.span(parent), *opposite)
        match test:
            case ast.Attribute():
                return Replace(span, '{0}.device.type != "cpu"', hole)
            case ast.Compare() if _is_type(test) and any(d.rule.name == "device-literal" for d in chain.drafts):
                pass  # a device is made here, which a third kind of device must not turn into
            case ast.Compare(ops=[ast.Eq()]) if self._is_cuda_or_cpu(test):
                return Replace(span, '{0} != "cpu"', hole)
            case ast.Compare(ops=[ast.NotEq()]) if self._is_cuda_or_cpu(test):
                return Replace(span, '{0} == "cpu"', hole)
        return Replace(module.span(_literal_of(test)), "{accelerator_type}")

    def _is_cuda_or_cpu(self, test: ast.Compare) -> bool:
        """Whether what is compared can only be the type of a device, or a text that is `cuda` or `cpu`."""
        device = subject(test)
        if _is_type(test):
            return True
        value = self.module.only_value(device) if isinstance(device, ast.Name) else None
        return isinstance(value, ast.IfExp) and default_device_kind(self.module, value) == "text"

    def _opposite(self, test: ast.expr, device: ast.expr) -> tuple[str, tuple[Span, ...]] | None:
        """What `not` and the test become together."""
        match test:
            case ast.Attribute():
                return '{0}.device.type == "cpu"', (self.module.span(device),)
        return None

    def _keep(self, chain: Chain, reason: str) -> None:
        """Leave the tests and all that they guard; what would put a TPU host on its CPU is an error."""
        places = any(self._places_data(draft) for draft in chain.drafts)
        for test in chain.tests:
            if tests_nccl(test) or self.context.guards.counts_devices(test):
                continue  # the rules of the NCCL backend and of the device count speak for it
            rule = self.availability if self.context.guards.tests_availability(test) else self.comparison
            severity = self._severity_when_kept(chain, test, places)
            self.drafts.append(Draft(rule, test, Role.NEUTRAL, reason=reason, severity=severity))
        line = self.module.span(chain.tests[0]).line
        for draft in chain.drafts:
            if draft.role is Role.MOVES and draft.edits:
                draft.edits = ()
                draft.reason = f"it stays with the test for CUDA on line {line}: {reason}"
            elif draft.role in (Role.BLOCKS, Role.CUDA_ONLY) and not draft.edits and not places:
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
        if not self.context.guards.tests_availability(test):
            return Severity.INFO if self._tests_mode(test) else Severity.WARNING
        if places:
            return Severity.ERROR
        return Severity.INFO if self.context.guards.knows_accelerators(test) else Severity.WARNING

    def _tests_mode(self, test: ast.expr) -> bool:
        value = subject(test)
        return value is not None and is_mode(dotted(value))

    def _finding(self, draft: Draft) -> Finding:
        fixable = bool(draft.edits)
        safety = (draft.safety or draft.rule.safety) if fixable else Safety.MANUAL
        if fixable and safety is Safety.MANUAL:
            safety = Safety.SAFE
        return Finding(
            code=draft.rule.code,
            rule=draft.rule.name,
            message=draft.message or draft.rule.message,
            span=self.module.span(draft.node),
            severity=draft.severity or draft.rule.severity,
            safety=safety,
            edits=draft.edits,
            reason=draft.reason,
            chain=self._chain_of.get(id(draft)),
        )


def _literal_of(test: ast.expr) -> ast.expr:
    """The string that a test compares with."""
    match test:
        case ast.Compare(left=ast.Constant() as literal) | ast.Compare(comparators=[ast.Constant() as literal]):
            return literal
        case ast.Call(args=[literal]):
            return literal
    raise AssertionError(ast.dump(test))


def _is_type(test: ast.Compare) -> bool:
    device = subject(test)
    return device is not None and (
        (isinstance(device, ast.Attribute) and device.attr == "type") or dotted(device).endswith("device_type")
    )


def settle(context: Context, drafts: Iterable[Draft], availability: Rule, comparison: Rule) -> list[Finding]:
    """Turn the drafts of all checks into findings, with the tests for CUDA around them moved or kept."""
    return Settlement(context, list(drafts), availability, comparison).findings()
