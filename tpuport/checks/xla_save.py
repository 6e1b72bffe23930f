"""`xm.save`: the first process writes a checkpoint, from the CPU."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant, is_unpacked
from tpuport.analysis.xla import MODEL, only_takes
from tpuport.draft import Context, Draft, Role
from tpuport.model import Edit, GuardStatement, Replace, Rule, SetArgument

SAVE = f"{MODEL}.save"


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every checkpoint that is written, with the loads of the same file."""
    module = context.module
    loads = tuple(_loads(context)) if any(context.xla.of(SAVE)) else ()
    for use in context.xla.of(SAVE):
        call = module.call_of(use.node)
        if call is None:
            yield Draft(rule, use.node, Role.BLOCKS, reason="it is passed on without being called")
            continue
        data, file = argument(call, 0, "data"), argument(call, 1, "file_or_path")
        only, everywhere = argument(call, 2, "master_only"), argument(call, 3, "global_master")
        settings = [value for value in (only, everywhere) if value is not None]
        plain = only_takes(call, 4, "data", "file_or_path", "master_only", "global_master")
        if data is None or file is None or not plain or not all(is_constant(v, True, False) for v in settings):
            yield Draft(rule, call, Role.BLOCKS, reason="which process writes, or what, is not written out")
        elif not module.is_bare(call):
            yield Draft(rule, call, Role.BLOCKS, reason="it is more than a statement of its own")
        else:
            edits: list[Edit] = [
                Replace(module.span(call), "torch.save({0}, {1})", (module.span(data), module.span(file)))
            ]
            if not is_constant(only, False):
                local = not is_constant(everywhere, True)
                statement = module.span(module.statement(call))
                edits.append(GuardStatement(statement, context.xla.is_first(call, local)))
            yield Draft(rule, call, Role.MOVES, (*edits, *loads))


def _loads(context: Context) -> Iterator[SetArgument]:
    """What was written from the CPU was loaded to the CPU."""
    module = context.module
    for call in module.of_type(ast.Call):
        if module.callee(call) == "torch.load" and not is_unpacked(call) and argument(call, 1, "map_location") is None:
            yield SetArgument(module.span(call), "map_location", '"cpu"')
