"""Seeds of XLA's own generator."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument
from tpuport.analysis.xla import MODEL, only_takes
from tpuport.draft import Context, Draft, Role
from tpuport.model import RemoveStatement, Rule

SEEDS = ("torch_xla.manual_seed", f"{MODEL}.set_rng_state")


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every such seed; one that repeats `torch.manual_seed`, which seeds every device, goes."""
    module = context.module
    seeded = {
        ast.dump(call.args[0])
        for call in module.of_type(ast.Call)
        if module.callee(call) == "torch.manual_seed" and len(call.args) == 1
    }
    for use in context.xla.of(*SEEDS):
        call = module.call_of(use.node)
        seed = argument(call, 0, "seed") if call is not None else None
        plain = call is not None and only_takes(call, 2, "seed", "device") and module.is_bare(call)
        if call is not None and seed is not None and plain and ast.dump(seed) in seeded:
            yield Draft(rule, call, Role.MOVES, (RemoveStatement(module.span(module.statement(call))),))
        else:
            reason = "`torch.manual_seed` seeds the accelerator, and the CPU's generator with it"
            yield Draft(rule, call or use.node, Role.BLOCKS, reason=reason)
