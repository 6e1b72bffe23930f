"""What a module does through PyTorch/XLA: its uses, where it starts processes, and where a process group is sure."""

import ast
from collections.abc import Iterator
from functools import cached_property

from tpuport.analysis.calls import argument, is_unpacked
from tpuport.analysis.module import Module, Use, dotted
from tpuport.analysis.scopes import Kind

ROOT = "torch_xla"
AREA = "xla"
"""The area of the rules whose findings in one file move together."""

MODEL = "torch_xla.core.xla_model"
RUNTIME = "torch_xla.runtime"
LAUNCHES = ("torch_xla.launch", "torch_xla.distributed.xla_multiprocessing.spawn")
REDUCTIONS = {
    f"{MODEL}.REDUCE_{name}": operation
    for name, operation in {"SUM": "SUM", "MUL": "PRODUCT", "MIN": "MIN", "MAX": "MAX", "AND": "", "OR": ""}.items()
}
"""The reductions, each with that of `torch.distributed.ReduceOp`, if there is one for every type."""

PRINT = f"{MODEL}.master_print"
METRICS = "torch_xla.debug.metrics."
GROUP = "torch.distributed.init_process_group"


def is_xla(name: str) -> bool:
    """Whether a qualified name belongs to PyTorch/XLA."""
    return name == ROOT or name.startswith(ROOT + ".")


class Xla:
    """One module's use of PyTorch/XLA."""

    def __init__(self, module: Module) -> None:
        self.module = module

    @cached_property
    def uses(self) -> list[Use]:
        """Every name of PyTorch/XLA that the module uses."""
        return [use for use in self.module.uses if is_xla(use.name)] if ROOT in self.module.source else []

    def of(self, *names: str) -> Iterator[Use]:
        """The uses of these names."""
        return (use for use in self.uses if use.name in names)

    @cached_property
    def launches(self) -> list[ast.Call]:
        """Calls that start a process for each device."""
        return [call for use in self.of(*LAUNCHES) if (call := self.module.call_of(use.node)) is not None]

    @cached_property
    def is_distributed(self) -> bool:
        """Whether the module shows that it runs in several processes."""
        groups = any(self.module.callee(call) == GROUP for call in self.module.of_type(ast.Call))
        return bool(self.launches) or groups or any(use.name.startswith("torch_xla.distributed") for use in self.uses)

    @cached_property
    def distributed(self) -> str:
        """How the module writes `torch.distributed`."""
        for name, bindings in self.module.scope.bindings.items():
            alone = len(bindings) == 1 and bindings[0].kind is Kind.IMPORT and bindings[0].origin == "torch.distributed"
            if alone and sum(name in scope.bindings for scope in self.module.own_scopes.values()) == 1:
                return name
        return "torch.distributed"

    def shows_metrics(self, call: ast.expr) -> bool:
        """Whether a call is a line that only prints or clears the metrics of PyTorch/XLA."""
        if not isinstance(call, ast.Call) or not self.module.is_bare(call):
            return False
        printed = call.args[0] if len(call.args) == 1 else None
        prints = self.module.callee(call) == PRINT or dotted(call.func) == "print"
        measures = printed if prints and isinstance(printed, ast.Call) else call
        return self.module.callee(measures).startswith(METRICS)

    def has_group(self, node: ast.AST) -> bool:
        """Whether `node` runs only in the processes that this module starts, where a process group is made first."""
        around = [
            parent.name
            for child, parent in self.module.ancestors(node)
            if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and child in parent.body
        ]
        return bool(self.launches and around) and not self._early.intersection(around)

    @cached_property
    def _early(self) -> set[str]:
        """Functions and classes that code before the launch may reach, by their names."""
        started = {dotted(first) for call in self.launches if (first := argument(call, 0, "fn")) is not None}
        bodies: dict[str, list[ast.AST]] = {}
        for node in self.module.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                bodies.setdefault(node.name, []).append(node)
        top = [s for s in self.module.tree.body if not isinstance(s, ast.FunctionDef | ast.ClassDef)]
        pending = [name for statement in top for name in _names(statement)]
        pending += [name for node in _decorations(self.module) for name in _names(node)]
        early: set[str] = set()
        while pending:
            name = pending.pop()
            if name in bodies and name not in early and name not in started:
                early.add(name)
                pending += [inner for body in bodies[name] for inner in _names(body)]
        return early

    def rank(self, node: ast.AST) -> str:
        """The number of this process among all, as an expression."""
        get = f"{self.distributed}.get_rank()"
        return get if self.has_group(node) else f"{get} if {self.distributed}.is_initialized() else 0"

    def world_size(self, node: ast.AST) -> str:
        """How many processes there are, as an expression."""
        get = f"{self.distributed}.get_world_size()"
        return get if self.has_group(node) else f"{get} if {self.distributed}.is_initialized() else 1"

    def is_first(self, node: ast.AST, local: bool) -> str:
        """Whether this process is the first one of all, or of its host, as an expression."""
        if local:
            return f"{self.distributed}.get_node_local_rank(0) == 0"
        first = f"{self.distributed}.get_rank() == 0"
        return first if self.has_group(node) else f"not {self.distributed}.is_initialized() or {first}"


def _names(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            yield inner.id
        elif isinstance(inner, ast.Attribute):
            yield inner.attr


def _decorations(module: Module) -> Iterator[ast.AST]:
    """What runs where functions and classes are defined."""
    for node in module.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d))
        elif isinstance(node, ast.ClassDef):
            yield from (
                *node.decorator_list,
                *node.bases,
                *(s for s in node.body if not isinstance(s, ast.FunctionDef)),
            )


def only_takes(call: ast.Call, positional: int, *keywords: str) -> bool:
    """Whether a call passes at most so many arguments by position, and by name only these."""
    named = all(keyword.arg in keywords for keyword in call.keywords)
    return not is_unpacked(call) and len(call.args) <= positional and named
