"""Why a chain of tests stays as it is."""

import ast
from functools import cached_property

from tpuport.analysis.branches import OUTPUT_CALLS, Branches
from tpuport.analysis.calls import is_constant
from tpuport.analysis.devices import DEVICE_NAME, Place, place
from tpuport.analysis.guards import CUDA_AVAILABLE, SKIPS, Condition, conditions, ends_block, is_skip, tests_nccl
from tpuport.analysis.module import dotted
from tpuport.checks.device_comparison import subject
from tpuport.checks.map_location import locations
from tpuport.draft import Context, Draft, Role
from tpuport.settle.chains import Chain, is_expected
from tpuport.settle.hold import Holds
from tpuport.source.torch_floor import HELD

PORTABLE_SPEEDUPS = {"pin_memory", "non_blocking", "fused"}
"""Arguments and methods that pay on any accelerator; each was run on a TPU device."""

PLACES = {"cuda-call", "device-literal", "legacy-tensor-type"}
"""Rules for what puts tensors on a device."""

TELLS_APART = "it tells CUDA from other accelerators"
HANDED_ON = "its value is handed on, and where it goes is not known"
NCCL = "NCCL exists for CUDA only"
MAPS_AWAY = "without it a checkpoint is left where it was saved, on CUDA"
TELLS_OF_CUDA = "it only tells people of CUDA, which stays true"
FOR_GPUS = ("dp", "ddp2")
"""Names of strategies that drive several GPUs from one process."""

MEETS = "torch.distributed.init_process_group"
GPUS = "it chooses how several GPUs are driven from one process"
COUNT_RULE = "device-count"
"""A number of devices beside a comparison says nothing of what the comparison is for."""

HOLDS = "it holds on a TPU host too"
ONE_DEVICE = "without CUDA it drives no devices from this process, which is right on a TPU"
TEXT_PARTS = (ast.Call, ast.JoinedStr, ast.FormattedValue, ast.BinOp, ast.Tuple)
"""What a value goes through on its way into a text that is told."""

NOT_PLAIN = "what it guards can not be told to mean the same on other accelerators"


class Reasons:
    """Looks for what holds a chain back; each method gives a reason, or an empty string."""

    def __init__(self, context: Context, drafts: list[Draft], branches: Branches, holds: Holds, needed: str) -> None:
        self.context = context
        self.module = context.module
        self.drafts = drafts
        self.branches = branches
        self.holds = holds
        self.needed = needed

    def why_it_stays(self, chain: Chain) -> str:
        """The first reason that applies; empty when the chain can move."""
        guards = self.context.guards
        if all(map(self._tells_of_cuda, chain.tests)):
            return TELLS_OF_CUDA
        comparisons = [t for t in chain.tests if not guards.tests_availability(t) and not guards.counts_devices(t)]
        return self._code_in_it(chain) or self._value_of_it(chain) or self._comparison(chain, comparisons)

    def _code_in_it(self, chain: Chain) -> str:
        """Code under the tests that can not move, or may not be touched."""
        blocks = chain.with_role(Role.BLOCKS)
        if blocks:
            first = min(blocks, key=lambda draft: self.module.span(draft.node))
            line = self.module.span(first.node).line
            if first.reason.startswith(HELD):
                return f"it guards line {line}, where {first.reason}"
            return f"line {line} has no counterpart that is certain: {first.message or first.rule.message}"
        if any(map(tests_nccl, chain.tests)):
            return NCCL
        if CUDA_AVAILABLE in self.context.replaced and any(map(self.context.guards.tests_availability, chain.tests)):
            return f"the file replaces {CUDA_AVAILABLE} itself, so both have to move together"
        if any(map(self.context.is_scripted, chain.tests)):
            return "TorchScript compiles this function, which does not know the accelerator"
        if any(map(self._empties_device_ids, chain.tests)):
            return ONE_DEVICE
        if any(map(self._maps_away, chain.tests)):
            return MAPS_AWAY
        if any(map(self.context.guards.asks_both, chain.tests)):
            return TELLS_APART
        if chain.suspects:
            return f"line {self.module.span(chain.suspects[0]).line} looks like code for CUDA only"
        return self.holds.floor(self.needed)

    def _tells_of_cuda(self, test: ast.expr) -> bool:
        """Whether a test's value only goes into a text that people read, and that speaks of CUDA."""
        around = [parent for _, parent in self.module.ancestors(test) if isinstance(parent, ast.expr)]
        if not around or not all(isinstance(parent, TEXT_PARTS) for parent in around):
            return False
        texts = (n.value for n in ast.walk(around[-1]) if isinstance(n, ast.Constant) and isinstance(n.value, str))
        told = isinstance(around[-1], ast.Call) and _method(around[-1].func) in OUTPUT_CALLS
        return told and any("cuda" in text.lower() for text in texts)

    @cached_property
    def _locations(self) -> list[ast.Assign]:
        return locations(self.module)

    def _maps_away(self, test: ast.expr) -> bool:
        """Whether a test that fails gives a `map_location`, and no branch for CUDA gives another."""
        return any(
            not condition.holds and test in self.context.guards.cuda_sources(Condition(condition.test, True))
            for assigned in self._locations
            for condition in conditions(self.module, assigned)
        )

    def _empties_device_ids(self, test: ast.expr) -> bool:
        """Whether a wrapper in the manner of `DataParallel` is told here to call its module alone."""
        around = {up for _, up in self.module.ancestors(test)}
        return any(
            isinstance(parent, ast.If) and parent in around
            for assigned in self.module.of_type(ast.Assign)
            if isinstance(assigned.value, ast.List) and not assigned.value.elts
            if dotted(assigned.targets[0]).endswith(".device_ids")
            for _, parent in self.module.ancestors(assigned)
        )

    def _value_of_it(self, chain: Chain) -> str:
        """A test whose value goes where it can not be followed."""
        for test in chain.tests:
            if not self.context.guards.counts_devices(test) and (lost := self._where_the_value_goes(test, test)):
                return lost
        return self._needs_cuda_under_a_flag(chain)

    def _comparison(self, chain: Chain, comparisons: list[ast.expr]) -> str:
        """Comparisons that mean more than CUDA or not, and tests that guard nothing which moves."""
        if any(map(self._asks_again, comparisons)):
            return "the same device is asked about again, for another type"
        if stays := next(filter(None, map(self._producer_that_stays, comparisons)), ""):
            return stays
        moves = [d for d in chain.with_role(Role.MOVES) if not (comparisons and d.rule.name == COUNT_RULE)]
        return "" if moves else self._why_it_stays_alone(chain, comparisons)

    def _needs_cuda_under_a_flag(self, chain: Chain) -> str:
        """Why a test that is kept in a variable stays: code that needs CUDA runs under a variable not followed here."""
        guards = self.context.guards
        if not any(isinstance(self.module.statement(test), ast.Assign) for test in chain.tests):
            return ""
        for draft in self.drafts:
            if draft.role is Role.BLOCKS and guards.open_flags(draft.node):
                line = self.module.span(draft.node).line
                return f"line {line} needs CUDA under a flag that may be this one"
        elsewhere = dict(self.context.project.needs_cuda)
        for name in (name for test in chain.tests for name in guards.kept_in(test)):
            if name in elsewhere:
                return f"{elsewhere[name]} needs CUDA under a variable of the same name, {name}"
        return ""

    def _why_it_stays_alone(self, chain: Chain, comparisons: list[ast.expr]) -> str:
        """Why tests stay that guard nothing which moves."""
        only = chain.with_role(Role.CUDA_ONLY)
        if only:
            guarded = all(draft.own_guard for draft in only) and all(map(self._demands, chain.tests))
            return "" if guarded else "what it guards is for CUDA only"
        if all(map(self.context.guards.knows_accelerators, chain.tests)):
            return TELLS_APART
        if chain.tests == comparisons and all(map(self._asserts_absence, comparisons)):
            return HOLDS
        asserted = len(comparisons) < len(chain.tests) and all(is_expected(self.module, t) for t in comparisons)
        if comparisons and not asserted and not all(map(self._holds_elsewhere, comparisons)):
            return "whether other accelerators take this branch is for a person to say"
        if comparisons or all(self._is_portable(test) for test in chain.tests):
            return ""
        return NOT_PLAIN

    def _holds_elsewhere(self, test: ast.expr) -> bool:
        """Whether a comparison that guards nothing which moves has to hold on every accelerator."""
        portable = self._guards_speedup(test) or self._enables_autocast(test) or self._expects_what_moves(test)
        return portable or self._is_speedup(test) or self.branches.reads_device(test)

    def _is_speedup(self, test: ast.expr) -> bool:
        """Whether the test's value is itself an argument that pays on any accelerator."""
        parent = self.module.parents[test]
        return isinstance(parent, ast.keyword) and parent.arg in PORTABLE_SPEEDUPS

    def _asserts_absence(self, test: ast.expr) -> bool:
        """Whether it is asserted that a tensor or device is not on CUDA: so it is on a TPU host."""
        parent = self.module.parents[test]
        denied = isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
        match parent:
            case ast.Compare(ops=[ast.Is() | ast.Eq()], comparators=[ast.Constant(value=False)]):
                denied = True
        return denied and isinstance(self.module.parents[parent], ast.Assert)

    def _expects_what_moves(self, test: ast.expr) -> bool:
        """Whether it is asserted in a function in which something moves to the device at hand."""
        function = self.module.function(test)
        return is_expected(self.module, test) and any(
            draft.role is Role.MOVES and draft.edits and self.module.function(draft.node) is function
            for draft in self.drafts
            if draft.rule.name in PLACES
        )

    def _is_portable(self, test: ast.expr) -> bool:
        """Whether a test that guards nothing which moves says nothing of CUDA itself.

        A test case that is skipped looks at code of other files, which moves: it has to run where that runs.
        """
        skips = any(is_skip(parent) for _, parent in self.module.ancestors(test))
        plain = not is_expected(self.module, test) and self.branches.is_plain(test)
        return skips or plain or self._chooses_device(test) or self._demands_cuda(test)

    def _chooses_device(self, test: ast.expr) -> bool:
        """Whether it is `<a device of the user's> if <test> else "cpu"`, where a device is taken.

        What the user names, by an option or a setting, is for the accelerator that is there; its default moves with
        the literal that it is.
        """
        choice = self.module.parents[test]
        while isinstance(choice, ast.UnaryOp):
            choice = self.module.parents[choice]
        if not isinstance(choice, ast.IfExp) or place(self.module, choice) is Place.UNKNOWN:
            return False
        arms = [choice.body, choice.orelse]
        named = [arm for arm in arms if isinstance(arm, ast.Name | ast.Attribute) and DEVICE_NAME.search(_last(arm))]
        return len(named) == 1 and any(isinstance(arm, ast.Constant) and arm.value == "cpu" for arm in arms)

    def _producer_that_stays(self, test: ast.expr) -> str:
        """Why a comparison stays: a string that reaches the variable that it looks at stays `cuda`."""
        device = subject(test)
        found = self.module.lookup(device) if isinstance(device, ast.Name) else None
        bound = [(binding.value, getattr(binding.node, "iter", None)) for binding in found[1]] if found else []
        values = [value for pair in bound for value in pair]
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

    def _demands(self, test: ast.expr) -> bool:
        """Whether availability is asserted above what can be guarded by itself, where processes meet or all moves."""
        asserted = is_expected(self.module, test) and self.context.guards.tests_availability(test)
        function = self.module.function(test)
        meets = any(self.module.function(call) is function for call in self.module.calls_of(MEETS))
        return asserted and ((meets and function is not None) or self._demands_cuda(test))

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
        """Whether the branch holds something that pays on any accelerator."""
        named: list[ast.AST] = [node for node in self.module.of_type(ast.keyword) if node.arg in PORTABLE_SPEEDUPS]
        for name in PORTABLE_SPEEDUPS:
            named += self.module.attributes_by_name.get(name, [])
        return any(
            test in self.context.guards.cuda_sources(condition)
            for node in named
            for condition in conditions(self.module, node)
        )

    def _enables_autocast(self, test: ast.expr) -> bool:
        """Whether the test's value turns autocast on and off, directly or through a variable."""
        kept = set(self.context.guards.kept_in(test))
        return any(
            keyword.arg == "enabled" and any(node is test or _last(node) in kept for node in ast.walk(keyword.value))
            for call in self.module.of_type(ast.Call)
            if self.module.callee(call).endswith("autocast")
            for keyword in call.keywords
        )

    def _where_the_value_goes(self, node: ast.AST, test: ast.expr) -> str:
        """Why the test's value can not be followed; empty when it decides a branch, a flag or a known argument."""
        parent = self.module.parents[node]
        match parent:
            case ast.BoolOp() | ast.UnaryOp() | ast.NamedExpr() | ast.FormattedValue() | ast.JoinedStr():
                return self._where_the_value_goes(parent, test)
            case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod()) | ast.Tuple():
                return self._where_the_value_goes(parent, test)
            case ast.Compare(ops=[ast.Is() | ast.Eq()], comparators=[ast.Constant(value=bool())]):
                return self._where_the_value_goes(parent, test)
            case ast.If() | ast.While() | ast.Assert() | ast.comprehension() | ast.Expr():
                return ""
            case ast.IfExp(body=ast.Constant(value=bool()), orelse=ast.Constant(value=bool())):
                return self._where_the_value_goes(parent, test)
            case ast.IfExp(test=asked, body=body, orelse=orelse) if node is asked:
                return GPUS if any(is_constant(arm, *FOR_GPUS) for arm in (body, orelse)) else ""
            case ast.IfExp():
                return self._where_the_value_goes(parent, test)
            case ast.Assign() | ast.AnnAssign():
                followed = self.context.guards.is_followed(test, parent)
                return "" if followed else "the variable that keeps its value means more than that CUDA is there"
            case ast.Return():
                return "" if self.context.guards.answers(test, parent) else HANDED_ON
            case ast.keyword(arg=str(name)):
                return self._where_the_argument_goes(parent, name)
            case ast.Call(func=func) if node in parent.args:
                name = _method(func)
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


def _method(function: ast.expr) -> str:
    """The last part of a function's name, whatever stands before it."""
    return function.attr if isinstance(function, ast.Attribute) else dotted(function)


def _last(node: ast.AST) -> str:
    return dotted(node).rpartition(".")[2]
