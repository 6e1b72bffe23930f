"""Parameters shared between modules, which a move to a TPU parts."""

import ast
from collections.abc import Iterable, Iterator

from tpuport.analysis.guards import blocks
from tpuport.analysis.module import Module, dotted
from tpuport.draft import Context, Draft, Role
from tpuport.mapping import NO_CUDA, OTHER_THERE
from tpuport.model import InsertBefore, Rule, Severity

PARAMETER_LIST = "torch.nn.ParameterList"
SWAP = "torch.__future__.set_swap_module_params_on_conversion"


def keep_parameters(context: Context, rule: Rule, nodes: Iterable[ast.expr | ast.stmt], why: str) -> Iterator[Draft]:
    """A draft for each of `nodes`, which need parameters to stay the same objects in a move.

    In each function, above all of them, goes the statement that makes them so, unless the file has it; CUDA, where
    they do, is left as it is.
    """
    module = context.module
    if SWAP in module.uses_by_name:
        return
    functions: dict[ast.AST | None, list[ast.expr | ast.stmt]] = {}
    for node in sorted(nodes, key=module.span):
        functions.setdefault(module.function(node), []).append(node)
    for first, *others in functions.values():
        anchor = _above(module, first, others)
        there = NO_CUDA if context.guards.has_accelerator(anchor) else OTHER_THERE
        keep = f"if {there}:\n    {SWAP}(True)  # {why}\n"
        yield Draft(rule, first, Role.NEUTRAL, (InsertBefore(module.span(anchor), keep),))
        for node in others:
            reason = "it is settled with the first one of the function"
            yield Draft(rule, node, Role.NEUTRAL, reason=reason, severity=Severity.INFO)


def _above(module: Module, first: ast.AST, others: Iterable[ast.AST]) -> ast.stmt:
    """The innermost statement that runs before `first` and all `others`, or holds them."""
    statement = module.statement(first)
    while True:
        parent = module.parents[statement]
        [block] = [block for block in _blocks(parent) if statement in block]
        holds_all = all(any(s in _around(module, node) for s in block) for node in others)
        if isinstance(parent, _OUTER) or (holds_all and not _is_elif(parent, statement)):
            return statement
        statement = module.statement(parent)


_OUTER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)


def _is_elif(parent: ast.AST, statement: ast.stmt) -> bool:
    chained = isinstance(parent, ast.If) and parent.orelse == [statement] and isinstance(statement, ast.If)
    return chained and statement.col_offset == getattr(parent, "col_offset", -1)


def _around(module: Module, node: ast.AST) -> list[ast.AST]:
    return [node, *(parent for _, parent in module.ancestors(node))]


def _blocks(parent: ast.AST) -> Iterator[list[ast.stmt]]:
    yield from blocks(parent)
    yield from (part.body for part in [*getattr(parent, "handlers", ()), *getattr(parent, "cases", ())])


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every `a.weight = b.weight` and every list of other modules' parameters.

    None where the file keeps parameters whole when modules move.
    """
    module = context.module
    assignments = module.of_type(ast.Assign)
    tied = [node for node in assignments if _is_parameter(node.value) and _is_parameter(node.targets[0])]
    if tied and any(use.name.startswith("torch") for use in module.uses):
        yield from keep_parameters(context, rule, tied, "a move keeps tied parameters tied")
    lists = [call for call in module.calls_of(PARAMETER_LIST) if call.args and _collects(module, call.args[0])]
    if lists and not tied:
        yield from keep_parameters(context, rule, lists, "a move keeps the parameters of others theirs")


def _collects(module: Module, held: ast.expr) -> bool:
    """Whether a list is one of the parameters of modules, which have them too."""
    if any(map(_asks_for_parameters, ast.walk(held))):
        return True
    name = dotted(held)
    return bool(name) and any(
        dotted(call.func) in (f"{name}.extend", f"{name}.append", f"{name}.__iadd__")
        and any(map(_asks_for_parameters, ast.walk(call)))
        for call in module.of_type(ast.Call)
    )


def _asks_for_parameters(node: ast.AST) -> bool:
    """Whether it is `module.parameters()`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "parameters"


def _is_parameter(node: ast.expr) -> bool:
    """Whether an expression is the weight of a part of something: `self.head.weight`, not `self.weight`."""
    return isinstance(node, ast.Attribute) and node.attr == "weight" and dotted(node).count(".") > 1
