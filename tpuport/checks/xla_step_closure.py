"""`xm.add_step_closure`: a call that waits for the end of the lazy step."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument
from tpuport.analysis.xla import MODEL, only_takes
from tpuport.draft import Context, Draft, Role
from tpuport.model import Replace, Rule

CLOSURE = f"{MODEL}.add_step_closure"


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every such call."""
    module = context.module
    for use in context.xla.of(CLOSURE):
        call = module.call_of(use.node)
        function = argument(call, 0, "closure") if call is not None else None
        if call is None or function is None or not only_takes(call, 3, "closure", "args", "run_async"):
            yield Draft(rule, use.node, Role.BLOCKS, reason="what is to be called, or with what, is not written out")
            continue
        arguments = argument(call, 1, "args")
        holes = [module.span(function)]
        if isinstance(arguments, ast.Tuple | ast.List):
            holes += [module.span(value) for value in arguments.elts]
            passed = ", ".join(f"{{{number}}}" for number in range(1, len(holes)))
        elif arguments is not None:
            holes.append(module.span(arguments))
            passed = "*{1}"
        else:
            passed = ""
        if len(holes) > 10:
            yield Draft(rule, call, Role.BLOCKS, reason="it has too many arguments to be followed")
        else:
            yield Draft(rule, call, Role.MOVES, (Replace(module.span(call), f"{{0}}({passed})", tuple(holes)),))
